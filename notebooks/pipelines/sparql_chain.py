"""GraphSparqlQAChain of langchain-community 0.4.2: intent, query, rows, a sentence."""

import os

from langchain_community.chains.graph_qa.sparql import GraphSparqlQAChain
from langchain_community.graphs import RdfGraph
from langchain_openai import ChatOpenAI

from kgwb import build  # added

llm = ChatOpenAI(model="scripted", base_url="http://localhost:11434/v1", api_key="none")
graph = RdfGraph(source_file=os.environ["FILMS"])
graph.graph = build.wrap_rdflib(graph.graph)  # added
chain = GraphSparqlQAChain.from_llm(
    llm, graph=graph, allow_dangerous_requests=True, return_sparql_query=True
)
STEPS = [  # added
    *build.steps_in(chain.sparql_intent_chain, choose_form="run"),  # added
    *build.steps_in(chain.sparql_generation_select_chain, draft="run"),  # added
    *build.steps_in(graph, look_up="query"),  # added
    *build.steps_in(chain.qa_chain, say="invoke"),  # added
]  # added


def answer(question):
    graph.load_schema()  # added: rdflib gives its rows in another order in each process
    return chain.invoke({"query": question})


SYSTEM = build.system_from_function("sparql_chain", answer, agents=STEPS)  # added
