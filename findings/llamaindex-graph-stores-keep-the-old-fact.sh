#!/usr/bin/env bash
# LlamaIndex: a triplet that was deleted, and a relation that was updated, stay as they were.
#
# Expected. GraphStore.delete is described as "Delete triplet", and upsert_relations of a
# PropertyGraphStore as "Upsert relations": a relation that is there already takes the new
# properties, as upsert_nodes does for a node in the same store.
#
# Seen (llama-index-core 0.14.25). SimpleGraphStore keeps pairs as lists and looks for a tuple,
# so delete never finds a triplet and returns without a word: Bonn is the capital of Germany
# after it was taken out, in get(), in get_rel_map() and in the text that
# KnowledgeGraphRAGRetriever gives a model. SimplePropertyGraphStore passes over a relation whose
# two nodes and label it knows: Oslo is the twin of Rome since 2021, though 2025 came after it.
#
#   capitals after delete    expected Berlin; seen Bonn, Berlin, and both in the model's text
#   relation after upsert    expected 2025; seen 2021 (a node: 2025)
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --no-compile --disable-pip-version-check \
    llama-index-core==0.14.25

venv/bin/python - <<'PY'
import warnings
from importlib.metadata import version

warnings.simplefilter("ignore")  # notices of deprecation
from llama_index.core import StorageContext
from llama_index.core.graph_stores import SimpleGraphStore, SimplePropertyGraphStore
from llama_index.core.graph_stores.types import EntityNode, Relation
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import KnowledgeGraphRAGRetriever

print("llama-index-core", version("llama-index-core"))
store = SimpleGraphStore()
store.upsert_triplet("Germany", "capital", "Bonn")
store.upsert_triplet("Germany", "capital", "Berlin")
store.delete("Germany", "capital", "Bonn")
capitals = [thing for relation, thing in store.get("Germany") if relation == "capital"]
retriever = KnowledgeGraphRAGRetriever(
    storage_context=StorageContext.from_defaults(graph_store=store),
    llm=MockLLM(),
    entity_extract_fn=lambda question: ["Germany"],
    synonym_expand_fn=lambda question: [],
)
told = "\n".join(n.text for n in retriever.retrieve("What is the capital of Germany?"))
print("capitals after delete:", *capitals, "| what a model is told:")
print(told)

properties = SimplePropertyGraphStore()
for year in (2021, 2025):
    properties.upsert_nodes([EntityNode(name="Oslo", properties={"counted": year})])
    properties.upsert_relations(
        [Relation(label="twinOf", source_id="Oslo", target_id="Rome", properties={"since": year})]
    )
((node, relation, _),) = properties.get_triplets(entity_names=["Oslo"])
print("after upsert: node", node.properties, "relation", relation.properties)
kept = (capitals, "Bonn" in told, node.properties["counted"], relation.properties["since"])
if kept != (["Bonn", "Berlin"], True, 2025, 2021):
    raise SystemExit("the behaviour has changed")
PY
