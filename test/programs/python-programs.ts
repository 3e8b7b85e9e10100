import type { Pins } from '#test/programs/install.ts'

/** A framework of Python, and the versions that are installed and run. */
export type PythonProgram = {
  /** Its heading on the page of the client for Python, below which its snippet stands. */
  name: string
  /** A file in `python/`. */
  file: string
  /** The first pin is the version that the page names. */
  oldest: Pins
  newest: Pins
}

export const pythonPrograms: PythonProgram[] = [
  {
    name: 'LangGraph',
    file: 'langgraph_store.py',
    oldest: ['langgraph==1.0.0', 'langgraph-prebuilt==1.0.0', 'langchain-openai==1.0.0'],
    newest: ['langgraph==1.2.24', 'langchain-openai==1.7.4'],
  },
  {
    name: 'LangChain',
    file: 'langchain_history.py',
    oldest: ['langchain-core==1.0.0', 'langchain-openai==1.0.0'],
    newest: ['langchain-core==1.8.3', 'langchain-openai==1.7.4'],
  },
  {
    name: 'OpenAI Agents SDK',
    file: 'openai_agents.py',
    oldest: ['openai-agents==0.6.4', 'openai==2.9.0'],
    newest: ['openai-agents==0.24.0'],
  },
  {
    name: 'Google ADK',
    file: 'google_adk.py',
    oldest: ['google-adk==1.26.0'],
    newest: ['google-adk==2.13.0'],
  },
  {
    name: 'CrewAI',
    file: 'crewai_storage.py',
    oldest: ['crewai==1.11.1'],
    newest: ['crewai==1.15.30'],
  },
  {
    name: 'Pydantic AI',
    file: 'pydantic_agent.py',
    oldest: ['pydantic-ai-slim[openai]==1.71.0'],
    newest: ['pydantic-ai-slim[openai]==2.68.0'],
  },
  {
    name: 'LlamaIndex',
    file: 'llama_memory.py',
    oldest: ['llama-index-core==0.13.0', 'llama-index-llms-openai-like==0.5.0'],
    newest: ['llama-index-core==0.14.25', 'llama-index-llms-openai-like'],
  },
  {
    name: 'Microsoft Agent Framework',
    file: 'context_provider.py',
    oldest: ['agent-framework-core==1.0.0', 'agent-framework-openai==1.0.0'],
    newest: ['agent-framework-core==1.23.0', 'agent-framework-openai==1.17.0'],
  },
  {
    name: "Anthropic's memory tool",
    file: 'anthropic_memory.py',
    oldest: ['anthropic==0.92.0'],
    newest: ['anthropic==2.14.0'],
  },
  {
    name: 'langchain-memoryrouter',
    file: 'memoryrouter.py',
    oldest: [
      'langchain-memoryrouter==0.1.0',
      'langgraph==1.0.0',
      'langgraph-prebuilt==1.0.0',
      'langchain-openai==1.0.0',
    ],
    newest: ['langchain-memoryrouter==0.1.2', 'langgraph==1.2.24', 'langchain-openai==1.7.4'],
  },
  {
    name: 'Hermes',
    file: 'hermes_provider.py',
    oldest: ['hermes-agent==0.17.0', 'hermes-memoryrouter==0.1.1'],
    newest: ['hermes-agent==0.19.0', 'hermes-memoryrouter==0.1.1'],
  },
  {
    name: 'Hermes, who speaks',
    file: 'hermes_speakers.py',
    oldest: ['hermes-agent==0.17.0', 'hermes-memoryrouter==0.1.1'],
    newest: ['hermes-agent==0.19.0', 'hermes-memoryrouter==0.1.1'],
  },
]
