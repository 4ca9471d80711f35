"""The command `seqray`: a file, or a folder, for each verb; `verbs` is their table, `dispatch` runs one."""
