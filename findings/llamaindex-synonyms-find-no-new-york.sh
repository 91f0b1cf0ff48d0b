#!/usr/bin/env bash
# LlamaIndex: a property graph with "New York City" has no answer about New York City.
#
# Expected. LLMSynonymRetriever "uses a language model to expand a query with synonyms. The synonyms
# are then used to retrieve nodes from a property graph"; its prompt asks the model to consider
# "possible cases of capitalization". It is one of the retrievers that a PropertyGraphIndex has
# unless told otherwise. So a node whose name the model says, letter by letter, is found.
#
# Seen (llama-index-core 0.14.25). Each synonym is put through str.capitalize, which makes all
# letters but the first small, and is compared with the name as it is stored. SimpleLLMPathExtractor
# stores names like that; upsert_nodes, by which a graph of RDF or Wikidata gets in, keeps "New York
# City", "BBC" and "IJsselmeer". These are never found, whatever the model says: the context is
# empty and no error is reported. Names of one word with one capital are found, so a test with Rome
# passes.
#
#   node           said by the model                              found
#   Rome           Rome, rome, ROME                               Rome -> IN -> Earth
#   New York City  New York City, new york city, NEW YORK CITY    nothing
#   BBC            BBC, bbc, BBC                                  nothing
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -qq --disable-pip-version-check \
    llama-index-core==0.14.25

venv/bin/python -W ignore - <<'PY'
from importlib.metadata import version
from typing import Any

from llama_index.core.graph_stores import SimplePropertyGraphStore
from llama_index.core.graph_stores.types import EntityNode, Relation
from llama_index.core.indices.property_graph import LLMSynonymRetriever
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback

print("llama-index-core", version("llama-index-core"))


class Model(CustomLLM):
    """Says the name in three ways."""

    says: str

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        return CompletionResponse(text=self.says)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any):
        yield CompletionResponse(text=self.says)


seen = {}
for name in ("Rome", "New York City", "BBC", "IJsselmeer"):
    place, world = EntityNode(name=name), EntityNode(name="Earth")
    store = SimplePropertyGraphStore()
    store.upsert_nodes([place, world])
    store.upsert_relations([Relation(label="IN", source_id=place.id, target_id=world.id)])
    model = Model(says="^".join([name, name.lower(), name.upper()]))
    retriever = LLMSynonymRetriever(store, llm=model, include_text=False)
    found = [node.text for node in retriever.retrieve(f"Where is {name}?")]
    stored = bool(store.get(ids=[name]))
    seen[name] = found
    print(f"{name:<14} in the store: {stored}, said: {model.says}, found: {found}")
if seen != {"Rome": ["Rome -> IN -> Earth"], "New York City": [], "BBC": [], "IJsselmeer": []}:
    raise SystemExit("the behaviour has changed")
PY
