from .run import audit as audit
