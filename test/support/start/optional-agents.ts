import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createOpenAiClient } from '#test/support/doubles/model-provider/clients.ts'
import {
  parameters,
  sky,
  system,
  withoutClosing,
  type ClientAgent,
} from '#test/support/start/client-agents.ts'

/**
 * Agents built with libraries that the project does not have. They are looked for in the folder
 * `CLIENT_MODULES`, into which `npm install @openai/agents @langchain/langgraph @langchain/openai
 * @langchain/core @google/genai` was run.
 */

// oxlint-disable-next-line typescript/no-explicit-any -- types of packages that are not there
type Module = any
type Load = (name: string) => Promise<Module>

async function openaiAgents(load: Load): Promise<ClientAgent['start']> {
  const { Agent, OpenAIProvider, Runner, tool } = await load('@openai/agents')
  const forecast = tool({
    name: 'forecast',
    description: 'The weather to come',
    parameters,
    strict: true,
    execute: () => sky,
  })
  const agent = new Agent({
    name: 'Agent',
    instructions: system,
    model: 'gpt-5-mini',
    tools: [forecast],
  })
  return to => {
    const modelProvider = new OpenAIProvider({ openAIClient: createOpenAiClient(to) })
    const runner = new Runner({ modelProvider, tracingDisabled: true })
    let history: object[] = []
    return async said => {
      const result = await runner.run(agent, [...history, { role: 'user', content: said }])
      history = result.history
      return result.finalOutput as string
    }
  }
}

async function langGraph(load: Load): Promise<ClientAgent['start']> {
  const { createReactAgent } = await load('@langchain/langgraph/prebuilt')
  const { ChatOpenAI } = await load('@langchain/openai')
  const { tool } = await load('@langchain/core/tools')
  const forecast = tool(() => sky, {
    name: 'forecast',
    description: 'The weather to come',
    schema: parameters,
  })
  return ({ baseUrl, apiKey, fetch }) => {
    const llm = new ChatOpenAI({
      model: 'gpt-5-mini',
      useResponsesApi: true,
      apiKey: apiKey.openai,
      maxRetries: 0,
      configuration: { baseURL: baseUrl.openai, fetch },
    })
    const agent = createReactAgent({ llm, tools: [forecast], prompt: system })
    let messages: Module[] = []
    return async said => {
      const turn = { messages: [...messages, { role: 'user', content: said }] }
      ;({ messages } = await agent.invoke(turn))
      return messages.at(-1).text as string
    }
  }
}

async function googleGenAi(load: Load): Promise<ClientAgent['start']> {
  const { GoogleGenAI } = await load('@google/genai')
  const declaration = { name: 'forecast', description: 'The weather', parameters: withoutClosing() }
  return ({ baseUrl, apiKey, headers }) => {
    const ai = new GoogleGenAI({
      apiKey: apiKey.google,
      httpOptions: { baseUrl: baseUrl.google, headers: headers.google ?? {} },
    })
    const chat = ai.chats.create({
      model: 'gemini-2.5-flash',
      config: { systemInstruction: system, tools: [{ functionDeclarations: [declaration] }] },
    })
    const send = async (message: unknown): Promise<{ text: string; isCall: boolean }> => {
      let text = ''
      let isCall = false
      for await (const chunk of await chat.sendMessageStream({ message })) {
        if (chunk.functionCalls?.length > 0) isCall = true
        else text += chunk.text ?? ''
      }
      return { text, isCall }
    }
    return async said => {
      let answer = await send(said)
      while (answer.isCall) {
        const functionResponse = { name: 'forecast', response: JSON.parse(sky) as object }
        answer = await send([{ functionResponse }])
      }
      return answer.text
    }
  }
}

type OptionalAgent = Pick<ClientAgent, 'name' | 'field'> & {
  build(load: Load): Promise<ClientAgent['start']>
}

const agents: OptionalAgent[] = [
  { name: '@openai/agents', field: 'input', build: openaiAgents },
  { name: '@langchain/langgraph over Responses', field: 'input', build: langGraph },
  { name: '@google/genai, streaming', field: 'contents', build: googleGenAi },
]

/** The agents whose libraries are there. */
export async function findOptionalAgents(): Promise<ClientAgent[]> {
  const folder = process.env.CLIENT_MODULES
  if (!folder) return []
  const loader = join(folder, 'load.mjs')
  writeFileSync(loader, 'export const load = name => import(name)\n')
  const { load } = (await import(pathToFileURL(loader).href)) as { load: Load }
  return await Promise.all(
    agents.map(async ({ build, ...agent }) => ({ ...agent, start: await build(load) })),
  )
}
