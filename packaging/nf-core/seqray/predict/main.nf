process SEQRAY_PREDICT {
    tag "$meta.id"
    label 'process_medium'

    // Neither is published yet: build the image by packaging/container/Dockerfile, or have seqray on the PATH.
    conda "${moduleDir}/environment.yml"
    container "seqray:0.3.0"

    input:
    tuple val(meta), path(sequences)
    val   shipped_model
    path  model_file

    output:
    tuple val(meta), path("*.predictions.tsv.gz"), emit: tsv
    tuple val(meta), path("*.skipped.tsv")       , emit: skipped
    path "versions.yml"                          , emit: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    def args   = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${meta.id}"
    def model  = model_file ? "./${model_file}" : shipped_model
    """
    seqray predict \\
        ${sequences} \\
        --model ${model} \\
        --out ${prefix}.predictions.tsv.gz \\
        --skipped ${prefix}.skipped.tsv \\
        --allow-empty \\
        --threads ${task.cpus} \\
        --quiet \\
        ${args}

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        seqray: \$(seqray --version | sed 's/^seqray //')
    END_VERSIONS
    """

    stub:
    def prefix = task.ext.prefix ?: "${meta.id}"
    """
    echo '' | gzip > ${prefix}.predictions.tsv.gz
    touch ${prefix}.skipped.tsv

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        seqray: \$(seqray --version | sed 's/^seqray //')
    END_VERSIONS
    """
}
