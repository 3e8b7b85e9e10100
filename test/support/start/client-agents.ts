import { createOpenAI } from '@ai-sdk/openai'
import type Anthropic from '@anthropic-ai/sdk'
import { HumanMessage, ToolMessage, type BaseMessage } from '@langchain/core/messages'
import { tool as langchainTool } from '@langchain/core/tools'
import { ChatOpenAI } from '@langchain/openai'
import { generateText, stepCountIs, streamText, tool, type ModelMessage } from 'ai'
import type OpenAI from 'openai'
import { z } from 'zod'
import {
  createAnthropicClient,
  createGeminiClient,
  createOpenAiClient,
  modelNames,
} from '#test/support/doubles/model-provider/clients.ts'
import type { ClientTarget } from '#test/support/doubles/model-provider/proxy-fixture.ts'

/** One turn of a conversation: what a person says, the loop with the tool, and the final answer. */
type Session = (said: string) => Promise<string>

/** An agent built with a library as its documentation shows: it has one tool, `forecast`. */
export type ClientAgent = {
  name: string
  /** Where the conversation stands in its requests. */
  field: 'input' | 'messages' | 'contents'
  start(to: ClientTarget): Session | Promise<Session>
}

export const system = 'You are terse.'
export const description = 'The weather to come'
export const sky = '{"sky":"clear"}'
export const parameters = {
  type: 'object' as const,
  properties: { city: { type: 'string' as const }, days: { type: 'number' as const } },
  required: ['city', 'days'],
  additionalProperties: false as const,
}

function openAiResponses(to: ClientTarget): Session {
  const { responses } = createOpenAiClient(to)
  const input: OpenAI.Responses.ResponseInput = []
  const tools = [
    { type: 'function' as const, name: 'forecast', strict: true, description, parameters },
  ]
  return async said => {
    input.push({ role: 'user', content: said })
    for (;;) {
      const body = { model: 'gpt-5-mini', instructions: system, input, tools, store: false }
      const { output, output_text: text } = await responses.create(body)
      input.push(...(output as OpenAI.Responses.ResponseInput))
      const calls = output.filter(item => item.type === 'function_call')
      if (calls.length === 0) return text
      for (const { call_id } of calls) {
        input.push({ type: 'function_call_output', call_id, output: sky })
      }
    }
  }
}

function openAiChat(to: ClientTarget): Session {
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'system', content: system }]
  return async said => {
    messages.push({ role: 'user', content: said })
    const runner = createOpenAiClient(to).chat.completions.runTools({
      model: modelNames.openai,
      messages,
      tools: [
        {
          type: 'function',
          function: { name: 'forecast', description, parameters, function: () => sky },
        },
      ],
    })
    const text = await runner.finalContent()
    messages.splice(0, messages.length, ...runner.messages)
    return text ?? ''
  }
}

function anthropic(to: ClientTarget): Session {
  const messages: Anthropic.MessageParam[] = []
  const tools = [{ name: 'forecast', description, input_schema: parameters }]
  return async said => {
    messages.push({ role: 'user', content: said })
    for (;;) {
      const body = { model: modelNames.anthropic, max_tokens: 500, system, messages, tools }
      const { content } = await createAnthropicClient(to).messages.stream(body).finalMessage()
      messages.push({ role: 'assistant', content })
      const uses = content.filter(part => part.type === 'tool_use')
      if (uses.length === 0) return content.map(part => ('text' in part ? part.text : '')).join('')
      messages.push({
        role: 'user',
        content: uses.map(({ id }) => ({
          type: 'tool_result' as const,
          tool_use_id: id,
          content: sky,
        })),
      })
    }
  }
}

function generativeAi(to: ClientTarget): Session {
  const declaration = { name: 'forecast', description, parameters: withoutClosing() }
  const model = createGeminiClient(to, {
    systemInstruction: system,
    tools: [{ functionDeclarations: [declaration as never] }],
  })
  const chat = model.startChat()
  return async said => {
    let { response } = await chat.sendMessage(said)
    while ((response.functionCalls() ?? []).length > 0) {
      const functionResponse = { name: 'forecast', response: JSON.parse(sky) as object }
      ;({ response } = await chat.sendMessage([{ functionResponse }]))
    }
    return response.text()
  }
}

/** Google's schemas have no `additionalProperties`. */
export function withoutClosing(): object {
  const { additionalProperties: _, ...open } = parameters
  return open
}

/** By its defaults: `openai(…)` is the Responses API. */
function aiSdk({ baseUrl, apiKey, fetch }: ClientTarget, streaming: boolean): Session {
  const openai = createOpenAI({ baseURL: baseUrl.openai, apiKey: apiKey.openai, fetch })
  const messages: ModelMessage[] = []
  const forecast = tool({
    description,
    inputSchema: z.object({ city: z.string(), days: z.number() }),
    execute: () => ({ sky: 'clear' }),
  })
  return async said => {
    messages.push({ role: 'user', content: said })
    const asked = {
      model: openai('gpt-5-mini'),
      messages,
      tools: { forecast },
      stopWhen: stepCountIs(4),
      maxRetries: 0,
    }
    const result = streaming ? streamText(asked) : await generateText(asked)
    const text = await result.text
    messages.push(...(await result.responseMessages))
    return text
  }
}

function langchain({ baseUrl, apiKey, fetch }: ClientTarget): Session {
  const forecast = langchainTool(() => sky, {
    name: 'forecast',
    description,
    schema: z.object({ city: z.string(), days: z.number() }),
  })
  const model = new ChatOpenAI({
    model: 'gpt-5-mini',
    useResponsesApi: true,
    apiKey: apiKey.openai,
    maxRetries: 0,
    configuration: { baseURL: baseUrl.openai, fetch },
  }).bindTools([forecast])
  const messages: BaseMessage[] = []
  return async said => {
    messages.push(new HumanMessage(said))
    for (;;) {
      const answer = await model.invoke(messages)
      messages.push(answer)
      if (!answer.tool_calls?.length) return answer.text
      for (const { id } of answer.tool_calls) {
        messages.push(new ToolMessage({ content: sky, tool_call_id: id! }))
      }
    }
  }
}

/** With the libraries that the project has. */
export const clientAgents: ClientAgent[] = [
  { name: 'OpenAI SDK, Responses', field: 'input', start: openAiResponses },
  { name: 'OpenAI SDK, chat with runTools', field: 'messages', start: openAiChat },
  { name: 'Anthropic SDK', field: 'messages', start: anthropic },
  { name: 'Google Generative AI SDK', field: 'contents', start: generativeAi },
  { name: 'AI SDK by its defaults', field: 'input', start: to => aiSdk(to, false) },
  { name: 'AI SDK by its defaults, streaming', field: 'input', start: to => aiSdk(to, true) },
  { name: 'LangChain over Responses', field: 'input', start: langchain },
]
