"""What is drawn: never what is held out, on no strand; ends of short contigs that say nothing."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from seqray.core.alphabet import DNA, reverse_complement
from seqray.genome.genes import Gene
from seqray.homology.kmers import KmerSet
from seqray.training.genomes.chunks import (
    AFTER,
    BEFORE,
    MASKED,
    ChunkOrder,
    GenomeData,
    GenomeParts,
    divide_genomes,
    read_chunks,
    training_sources,
)
from seqray.training.genomes.fit import validation_auprc
from seqray.training.genomes.sheet import DEV, TEST

CONTIGS = {"long": 600, "empty": 600, "other": 600, "short": 100, "other short": 100}


def masked_of(strand):
    return np.flatnonzero(strand.level == MASKED)


@pytest.mark.parametrize("turned", [False, True])
def test_a_copy_of_a_held_out_locus_is_masked_on_both_strands(turned, make_genome, random_letters):
    """60 letters of genome a's test region lie in genome b, on either strand; 20 more do not count."""
    held, b = random_letters(500, 1), random_letters(2000, 2)
    copy, chance = held[100:160], held[300:320]
    copy = reverse_complement(copy) if turned else copy
    b = b[:1000] + copy + b[1060:1500] + chance + b[1520:]
    genome_b = make_genome({"b": b})
    kmers = KmerSet([DNA.encode(held)], 40)
    [source] = training_sources(genome_b, kmers, 256)
    plus, minus = source.strands
    expected = np.arange(1000 - 40, 1060 + 40)  # and the letters around it
    # letters beside the copy may extend it by chance
    assert set(expected) <= set(masked_of(plus)) <= set(range(950, 1110))
    assert masked_of(minus).tolist() == sorted(1999 - masked_of(plus))


def test_kmers_against_a_set_of_words(random_letters):
    held, other = random_letters(300, 3), random_letters(400, 4)
    other = other[:50] + held[20:60] + "N" + held[61:120] + reverse_complement(held[200:240]) + other[250:]
    words = {held[i : i + 12] for i in range(len(held) - 11)}
    words |= {reverse_complement(word) for word in words}
    expected = np.zeros(len(other), dtype=bool)
    for i in range(len(other) - 11):
        if other[i : i + 12] in words:
            expected[i : i + 12] = True
    known = KmerSet([DNA.encode(held[:150]), DNA.encode(held[139:])], 12)
    assert known.marks(DNA.encode(other)).tolist() == expected.tolist()
    assert not KmerSet([], 12).marks(DNA.encode(other)).any()
    assert not known.marks(DNA.encode("ACGT")).any()


regions = st.lists(
    st.tuples(st.integers(0, 2500), st.integers(1, 500), st.sampled_from([DEV, TEST, "mask"])), max_size=4
)


@given(regions, st.integers(0, 1000), st.booleans())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_held_out_letters_never_have_weight(make_genome, make_config, random_letters, found, seed, circular):
    """Every position of the contig gets other letters around it, so a chunk shows where it comes from."""
    length, config = 3000, make_config(genomes={"mutate": 0.0, "cut": 0.0})
    letters = random_letters(length, 5)
    spans = [(start, start + size, name) for start, size, name in found]
    genome = make_genome(
        {"c": letters},
        {"c": [(at, strand, 0, 1.0) for at in range(50, 2950, 100) for strand in "+-"]},
        {"c": spans},
        circular=circular,
    )
    sources = training_sources(genome, KmerSet([], 40), 256)
    data = GenomeData(GenomeParts(sources, [1 / len(sources)] * len(sources), [], {}, []), config, seed)
    read, _ = data.training_batches(0, 1)
    held = np.zeros(length, dtype=bool)
    for start, end, _ in spans:
        held[start:end] = True
    where = {letters[i : i + 20]: i for i in range(length - 19)}
    order = ChunkOrder([1.0], 10, 4, seed)
    for key in order:
        batch = read(key)
        for codes, weights in zip(batch.letters.numpy(), batch.weights.numpy(), strict=True):
            text = DNA.decode(codes)
            for i in np.flatnonzero(weights.any(axis=1)[:-20]).tolist():
                word = text[i : i + 20]
                if "N" in word:
                    continue
                at = where[word] if word in where else where[reverse_complement(word)] + 19
                assert not held[at]


def test_a_pass_reads_every_letter_of_both_strands(make_genome, random_letters):
    genome = make_genome({"c": random_letters(3000, 6)})
    [source] = training_sources(genome, KmerSet([], 40), 256)
    assert not source.joined
    assert source.letters == 6000
    seen = {id(strand): np.zeros(3000, dtype=bool) for strand in source.strands}
    for strand, start in source.chunks(256, np.random.default_rng(0)):
        seen[id(strand)][start : start + 256] = True
    assert all(marks.all() for marks in seen.values())


def contexts(make_genome, random_letters, count=40, strand="+"):
    """Contigs of 101 letters with a site at index 50."""
    letters = {f"c{i}": random_letters(101, 100 + i) for i in range(count)}
    return make_genome(letters, {name: [(50, strand, 0, 1.0)] for name in letters})


@pytest.mark.parametrize("strand", ["+", "-"])
def test_short_contigs_are_joined_on_the_strand_of_their_site(strand, make_genome, random_letters):
    genome = contexts(make_genome, random_letters, strand=strand)
    [source] = training_sources(genome, KmerSet([], 40), 512)
    assert source.joined
    assert len(source.strands) == 40
    [joined] = {
        id(place.strand): place.strand for place in source.chunks(512, np.random.default_rng(0))
    }.values()
    text, known = DNA.decode(joined.codes), {}
    for contig in genome.contigs:
        plus = DNA.decode(contig.codes)
        read = plus if strand == "+" else reverse_complement(plus)
        known[read[50 - BEFORE : 50 + AFTER + 1]] = contig.name
    found = [known.pop(text[at - BEFORE : at + AFTER + 1]) for at in joined.sites["position"].tolist()]
    assert sorted(found) == sorted(contig.name for contig in genome.contigs)
    assert not known


def test_the_distance_of_a_site_to_the_end_of_its_contig_varies(make_genome, random_letters):
    genome = contexts(make_genome, random_letters)
    [source] = training_sources(genome, KmerSet([], 40), 512)
    orders, distances = [], []
    for seed in (0, 1):
        strand = source.chunks(512, np.random.default_rng(seed))[0].strand
        distances.append(np.diff(strand.sites["position"]))
        orders.append(strand.sites["position"].tolist())
    assert orders[0] != orders[1]
    for found in distances:
        assert len(set(found.tolist())) > 10
        assert found.min() >= BEFORE + AFTER + 1
        assert found.max() <= 101


def test_genes_of_a_contig_that_is_not_named_are_not_known(make_genome, random_letters):
    """As a scan takes them: no genes and genes that nobody looked for are not the same."""
    letters = {name: random_letters(length, i) for i, (name, length) in enumerate(CONTIGS.items())}
    gene = Gene(30, 90, "+", "g")
    genome = make_genome(letters, genes={"long": [gene], "empty": [], "short": [gene]})
    found = [
        [None if strand.genes is None else len(strand.genes) for strand in source.strands]
        for source in training_sources(genome, KmerSet([], 40), 512)
    ]
    assert found == [[1, 1, 0, 0, None, None], [1, 1], [None, None]]


def test_species_that_are_left_out_mask_their_loci_in_others(make_genome, make_config, random_letters):
    shared = random_letters(300, 7)
    genomes = [
        make_genome({"a": random_letters(3000, 8) + shared}, {"a": [(500, "+", 0, 1.0), (1200, "-", 0, 1.0)]},
                    {"a": [(1000, 1500, DEV)]}, species="A"),
        make_genome({"b": shared + random_letters(3000, 9)}, species="B", group="G"),
    ]  # fmt: skip
    config = make_config()
    prepared = divide_genomes(genomes, ("promoter",), ["G"], config)
    [source] = prepared.sources
    masked = masked_of(source.strands[0])
    assert set(range(1000, 1500)) | set(range(3000, 3300)) <= set(masked.tolist())
    assert [held for _, held in prepared.measured] == ["region", "species"]
    free = 3300 - 500 - 300 - 3 * 40  # and 40 letters beside each of the two, if there are any
    assert prepared.counts == {"promoter": 1, "letters": 2 * free}
    assert {len(place.strand) for place in prepared.validation} == {3300}


def test_validation_reads_the_development_region_alone(make_genome, make_config, random_letters):
    genome = make_genome(
        {"c": random_letters(4000, 10)}, {"c": [(100, "+", 0, 1.0), (1200, "-", 0, 1.0)]},
        {"c": [(1000, 1700, DEV), (1700, 2300, TEST)]},
    )  # fmt: skip
    config = make_config()
    places = divide_genomes([genome], ("promoter",), [], config).validation
    batch = read_chunks(places, range(len(places)), config)
    for (strand, start), weights in zip(places, batch.weights.numpy(), strict=True):
        inside = (1000, 1700) if strand is places[0].strand else (2300, 3000)
        at = start + np.flatnonzero(weights.any(axis=1))
        assert len(at) > 100
        assert inside[0] <= at.min()
        assert at.max() < inside[1]


def test_a_genome_that_is_masked_from_end_to_end_is_not_drawn_and_one_with_few_free_letters_is(
    make_genome, random_letters
):
    letters = random_letters(4000, 11)
    masked = make_genome({"c": letters}, regions={"c": [(0, 4000, "mask")]})
    assert training_sources(masked, KmerSet([], 40), 1024) == []
    nearly = make_genome({"c": letters}, regions={"c": [(0, 3980, "mask")]})
    [source] = training_sources(nearly, KmerSet([], 40), 1024)
    assert source.letters == 2 * 20
    stream = source.stream(1024, (1,))
    drawn = [stream(number) for number in range(4)]
    assert all((strand.level[start : start + 1024] != MASKED).any() for strand, start in drawn)


def test_the_end_of_a_region_is_validated_on_too_and_what_is_beyond_it_does_not_count(
    make_genome, make_config, random_letters
):
    """A region of 400 letters is a chunk of 256 and one of which 144 letters count."""
    sites = {"c": [(1390, "+", 0, 1.0), (1450, "+", 0, 1.0), (3000, "-", 0, 1.0)]}
    genome = make_genome({"c": random_letters(4000, 12)}, sites, {"c": [(1000, 1400, DEV)]})
    places = divide_genomes([genome], ("promoter",), [], make_config()).validation
    plus = [place for place in places if place.strand is places[0].strand]
    assert [place.start for place in plus] == [1000, 1256]
    scores = np.full((2, 256), 0.01)
    scores[1, [1390 - 1256, 1450 - 1256]] = 0.9, 0.95  # the second site is learned from
    assert validation_auprc(scores, plus, 0) == 1.0


def test_sources_are_drawn_by_their_share_and_alike_after_a_resumption():
    order = ChunkOrder([0.8, 0.2], steps=50, batch_size=8, seed=3)
    numbers = {0: [], 1: []}
    for epoch in range(3):
        order.set_epoch(epoch)
        for _, _, drawn in order:
            for source, number in drawn:
                numbers[source].append(number)
    for found in numbers.values():
        assert found == list(range(len(found)))  # nothing is left out or drawn twice
    assert 0.77 < len(numbers[0]) / 1200 < 0.83
    again = ChunkOrder([0.8, 0.2], steps=50, batch_size=8, seed=3)
    again.set_epoch(2)
    assert list(again) == list(order)


def test_a_stream_gives_the_same_chunk_for_the_same_number(make_genome, random_letters):
    genome = make_genome({"c": random_letters(2000, 11)})
    [source] = training_sources(genome, KmerSet([], 40), 256)
    stream = source.stream(256, (1, 0))
    starts = [stream(i).start for i in range(60)]
    fresh = source.stream(256, (1, 0))
    assert fresh(45).start == starts[45]
    assert [fresh(i).start for i in (0, 10)] == [starts[0], starts[10]]
    assert starts[:18] != starts[18:36]


def test_hidden_and_cut_chunks(make_genome, make_config, random_letters):
    genome = make_genome({"c": random_letters(2000, 12)}, genes={"c": [Gene(100, 1900, "+", "g")]})
    [source] = training_sources(genome, KmerSet([], 40), 256)
    places = source.chunks(256, np.random.default_rng(0))[:8]
    for hide in (0.0, 1.0):
        config = make_config(genomes={"hide": hide, "cut": 1.0, "mutate": 0.0})
        batch = read_chunks(places, range(8), config, np.random.default_rng(1))
        assert batch.known.all()
        assert batch.hidden.tolist() == [bool(hide)] * 8
        gone = batch.letters == DNA.unknown
        assert gone.any(dim=1).all()
        assert not batch.weights[gone].any()
        assert not batch.tracks.transpose(1, 2)[gone].any()
    config = make_config(genomes={"cut": 0.0, "mutate": 0.5})
    changed = read_chunks(places, range(8), config, np.random.default_rng(1)).letters
    plain = read_chunks(places, range(8), config).letters
    assert 0.3 < (changed != plain).float().mean() < 0.45  # half of the letters, of which a quarter stay
