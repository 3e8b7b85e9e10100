import { createAnthropic } from '@ai-sdk/anthropic'
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { createOpenAI } from '@ai-sdk/openai'
import type Anthropic from '@anthropic-ai/sdk'
import { FunctionCallingMode } from '@google/generative-ai'
import { ChatAnthropic } from '@langchain/anthropic'
import type { BaseChatModel } from '@langchain/core/language_models/chat_models'
import { AIMessage, HumanMessage, SystemMessage, ToolMessage } from '@langchain/core/messages'
import { tool as langchainTool } from '@langchain/core/tools'
import { ChatGoogleGenerativeAI } from '@langchain/google-genai'
import { ChatOpenAI } from '@langchain/openai'
import {
  generateText,
  Output,
  stepCountIs,
  streamText,
  tool as aiTool,
  type LanguageModel,
} from 'ai'
import type OpenAI from 'openai'
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod'
import { z } from 'zod'
import {
  description,
  parameters,
  sky,
  system,
  withoutClosing,
} from '#test/support/start/client-agents.ts'
import {
  createAnthropicClient,
  createGeminiClient,
  createOpenAiClient,
  modelNames,
} from '#test/support/doubles/model-provider/clients.ts'
import { pngPixel } from '#test/support/doubles/model-provider/fixtures.ts'
import type {
  ClientTarget,
  FamilyName,
} from '#test/support/doubles/model-provider/proxy-fixture.ts'

/** What a program does with a library; each call makes a client of its own, without retries. */
export type ClientSdk = {
  family: FamilyName
  /** The text of an answer. */
  ask(to: ClientTarget, said: string): Promise<string>
  /** The texts of the pieces of a stream. */
  stream(to: ClientTarget, said: string): Promise<string[]>
  /** Asks for the weather: the arguments of the call of the tool, and the answer after its result. */
  useTool(to: ClientTarget, stream: boolean): Promise<[args: unknown, answer: string]>
  /** Asks what is on a picture. */
  look(to: ClientTarget): Promise<string>
  /** A structured answer; undefined where the library has none. */
  parse?(to: ClientTarget): Promise<unknown>
}

const weather = z.object({ city: z.string(), sunny: z.boolean() })
const asObject = 'Lisbon, as an object'
const asksWeather = 'What will the weather be?'
const asksPicture = 'What is it?'
const pixelUrl = `data:image/png;base64,${pngPixel}`
const forecast = { name: 'forecast', description }

const openAiChat: ClientSdk = {
  family: 'openai',
  async ask(to, content) {
    const messages = chatMessages(content)
    const body = { model: modelNames.openai, messages }
    const { choices } = await createOpenAiClient(to).chat.completions.create(body)
    return choices[0]?.message.content ?? ''
  },
  async stream(to, content) {
    const chunks = await createOpenAiClient(to).chat.completions.create({
      model: modelNames.openai,
      messages: chatMessages(content),
      stream: true,
      stream_options: { include_usage: true },
    })
    return (await Array.fromAsync(chunks)).map(({ choices }) => choices[0]?.delta.content ?? '')
  },
  async useTool(to, stream) {
    const { completions } = createOpenAiClient(to).chat
    const messages = chatMessages(asksWeather)
    const turn = async () => {
      const tools = [{ type: 'function' as const, function: { ...forecast, parameters } }]
      const body = { model: modelNames.openai, messages, tools }
      if (stream) return await completions.stream(body).finalMessage()
      return (await completions.create(body)).choices[0]!.message
    }
    const asks = await turn()
    const call = asks.tool_calls![0]! as OpenAI.ChatCompletionMessageFunctionToolCall
    messages.push(asks, { role: 'tool', tool_call_id: call.id, content: sky })
    return [JSON.parse(call.function.arguments), (await turn()).content ?? '']
  },
  async look(to) {
    const content = [
      { type: 'text' as const, text: asksPicture },
      { type: 'image_url' as const, image_url: { url: pixelUrl } },
    ]
    const body = { model: modelNames.openai, messages: [{ role: 'user' as const, content }] }
    const { choices } = await createOpenAiClient(to).chat.completions.create(body)
    return choices[0]?.message.content ?? ''
  },
  async parse(to) {
    const { choices } = await createOpenAiClient(to).chat.completions.parse({
      model: modelNames.openai,
      messages: chatMessages(asObject),
      response_format: zodResponseFormat(weather, 'weather'),
    })
    return choices[0]!.message.parsed
  },
}

const chatMessages = (content: string): OpenAI.ChatCompletionMessageParam[] => [
  { role: 'system', content: system },
  { role: 'user', content },
]

const openAiResponses: ClientSdk = {
  family: 'openai',
  async ask(to, input) {
    const body = { model: modelNames.openai, instructions: system, input }
    return (await createOpenAiClient(to).responses.create(body)).output_text
  },
  async stream(to, text) {
    const events = await createOpenAiClient(to).responses.create({
      model: modelNames.openai,
      input: [{ role: 'user', content: [{ type: 'input_text', text }] }],
      stream: true,
    })
    return (await Array.fromAsync(events)).map(event =>
      event.type === 'response.output_text.delta' ? event.delta : '',
    )
  },
  async useTool(to, stream) {
    const { responses } = createOpenAiClient(to)
    const input: OpenAI.Responses.ResponseInput = [{ role: 'user', content: asksWeather }]
    const turn = async (): Promise<OpenAI.Responses.Response> => {
      const tools = [{ type: 'function' as const, strict: true, ...forecast, parameters }]
      const body = { model: modelNames.openai, input, tools, store: false }
      return stream ? await responses.stream(body).finalResponse() : await responses.create(body)
    }
    const { output } = await turn()
    const call = output.find(item => item.type === 'function_call')!
    // The imitation makes another id for every item.
    input.push({ type: 'function_call', call_id: 'c', name: call.name, arguments: call.arguments })
    input.push({ type: 'function_call_output', call_id: 'c', output: sky })
    return [JSON.parse(call.arguments), (await turn()).output_text]
  },
  async look(to) {
    const content = [
      { type: 'input_text' as const, text: asksPicture },
      { type: 'input_image' as const, detail: 'low' as const, image_url: pixelUrl },
    ]
    const body = { model: modelNames.openai, input: [{ role: 'user' as const, content }] }
    return (await createOpenAiClient(to).responses.create(body)).output_text
  },
  async parse(to) {
    const format = zodTextFormat(weather, 'weather')
    const body = { model: modelNames.openai, input: asObject, text: { format } }
    return (await createOpenAiClient(to).responses.parse(body)).output_parsed
  },
}

const limits = { model: modelNames.anthropic, max_tokens: 200, system }
const textsOf = (content: readonly Anthropic.ContentBlock[]): string =>
  content.map(part => (part.type === 'text' ? part.text : '')).join('')

const anthropic: ClientSdk = {
  family: 'anthropic',
  async ask(to, content) {
    const messages = [{ role: 'user' as const, content }]
    return textsOf(
      (await createAnthropicClient(to).messages.create({ ...limits, messages })).content,
    )
  },
  async stream(to, content) {
    const messages = [{ role: 'user' as const, content }]
    const events = createAnthropicClient(to).messages.stream({ ...limits, messages })
    return (await Array.fromAsync(events)).map(event =>
      event.type === 'content_block_delta' && 'text' in event.delta ? event.delta.text : '',
    )
  },
  async useTool(to, stream) {
    const client = createAnthropicClient(to)
    const messages: Anthropic.MessageParam[] = [{ role: 'user', content: asksWeather }]
    const turn = async () => {
      const body = { ...limits, messages, tools: [{ ...forecast, input_schema: parameters }] }
      if (stream) return await client.messages.stream(body).finalMessage()
      return await client.messages.create(body)
    }
    const asks = await turn()
    const use = asks.content.find(block => block.type === 'tool_use')!
    messages.push(
      { role: 'assistant', content: asks.content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: use.id, content: sky }] },
    )
    return [use.input, textsOf((await turn()).content)]
  },
  async look(to) {
    const source = { type: 'base64' as const, media_type: 'image/png' as const, data: pngPixel }
    const content = [
      { type: 'image' as const, source },
      { type: 'text' as const, text: asksPicture },
    ]
    const messages = [{ role: 'user' as const, content }]
    return textsOf(
      (await createAnthropicClient(to).messages.create({ ...limits, messages })).content,
    )
  },
}

const gemini: ClientSdk = {
  family: 'google',
  async ask(to, said) {
    const model = createGeminiClient(to, { systemInstruction: system })
    return (await model.generateContent(said)).response.text()
  },
  async stream(to, said) {
    const { stream } = await createGeminiClient(to).generateContentStream(said)
    return (await Array.fromAsync(stream)).map(chunk => chunk.text())
  },
  async useTool(to, stream) {
    const chat = createGeminiClient(to, {
      tools: [{ functionDeclarations: [{ ...forecast, parameters: withoutClosing() } as never] }],
      toolConfig: { functionCallingConfig: { mode: FunctionCallingMode.AUTO } },
    }).startChat()
    const say = async (message: Parameters<typeof chat.sendMessage>[0]) => {
      if (!stream) return (await chat.sendMessage(message)).response
      return await (
        await chat.sendMessageStream(message)
      ).response
    }
    const [call] = (await say(asksWeather)).functionCalls()!
    const response = JSON.parse(sky) as object
    const answer = await say([{ functionResponse: { name: 'forecast', response } }])
    return [call!.args, answer.text()]
  },
  async look(to) {
    const parts = [asksPicture, { inlineData: { mimeType: 'image/png', data: pngPixel } }]
    return (await createGeminiClient(to).generateContent(parts)).response.text()
  },
  async parse(to) {
    const generationConfig = { responseMimeType: 'application/json' }
    const { response } = await createGeminiClient(to, { generationConfig }).generateContent(
      asObject,
    )
    return JSON.parse(response.text()) as unknown
  },
}

/** The Vercel AI SDK, over a model of a family. */
function aiSdk(family: FamilyName, modelOf: (to: ClientTarget) => LanguageModel): ClientSdk {
  const asked = (to: ClientTarget) => ({ model: modelOf(to), maxRetries: 0 })
  return {
    family,
    async ask(to, prompt) {
      return (await generateText({ ...asked(to), system, prompt })).text
    },
    stream: (to, prompt) =>
      Array.fromAsync(streamText({ ...asked(to), system, prompt }).textStream),
    async useTool(to, stream) {
      const args: unknown[] = []
      const tools = {
        forecast: aiTool({
          description,
          inputSchema: z.object({ city: z.string(), days: z.number().optional() }),
          execute: given => (args.push(given), { sky: 'clear' }),
        }),
      }
      const body = { ...asked(to), prompt: asksWeather, tools, stopWhen: stepCountIs(3) }
      const result = stream ? streamText(body) : await generateText(body)
      const text = await result.text
      return [args[0], text]
    },
    async look(to) {
      const data = Buffer.from(pngPixel, 'base64')
      const content = [
        { type: 'text' as const, text: asksPicture },
        { type: 'file' as const, data, mediaType: 'image/png' },
      ]
      return (await generateText({ ...asked(to), messages: [{ role: 'user', content }] })).text
    },
    async parse(to) {
      const output = Output.object({ schema: weather })
      return (await generateText({ ...asked(to), output, prompt: asObject })).output
    },
  }
}

function langchain(family: FamilyName, modelOf: (to: ClientTarget) => BaseChatModel): ClientSdk {
  const conversation = (said: string) => [
    new SystemMessage(system),
    new HumanMessage('My bicycle is orange.'),
    new AIMessage('A fine colour.'),
    new HumanMessage(said),
  ]
  const lookUp = langchainTool(() => sky, {
    ...forecast,
    schema: z.object({ city: z.string(), days: z.number().optional() }),
  })
  return {
    family,
    ask: async (to, said) => (await modelOf(to).invoke(conversation(said))).text,
    async stream(to, said) {
      const chunks = await Array.fromAsync(await modelOf(to).stream(conversation(said)))
      return chunks.map(chunk => chunk.text)
    },
    async useTool(to) {
      const model = modelOf(to).bindTools!([lookUp])
      const asked = new HumanMessage(asksWeather)
      const called = (await model.invoke([asked])) as AIMessage
      const { args, id = 'call_1', name } = called.tool_calls![0]!
      const result = new ToolMessage({ content: sky, tool_call_id: id, name })
      return [args, (await model.invoke([asked, called, result])).text]
    },
    async look(to) {
      const content = [
        { type: 'text', text: asksPicture },
        { type: 'image_url', image_url: { url: pixelUrl } },
      ]
      return (await modelOf(to).invoke([new HumanMessage({ content })])).text
    },
    ...(family === 'openai' && {
      parse: to =>
        (modelOf(to) as ChatOpenAI)
          .withStructuredOutput(weather, { method: 'jsonSchema' })
          .invoke(asObject),
    }),
  }
}

export const clientSdks: Record<string, ClientSdk> = {
  'OpenAI, chat': openAiChat,
  'OpenAI, Responses': openAiResponses,
  Anthropic: anthropic,
  'Google Generative AI': gemini,
  'AI SDK over OpenAI': aiSdk('openai', ({ baseUrl, apiKey, headers, fetch }) =>
    createOpenAI({
      baseURL: baseUrl.openai,
      apiKey: apiKey.openai,
      headers: headers.openai ?? {},
      fetch,
    }).chat(modelNames.openai),
  ),
  'AI SDK over Anthropic': aiSdk('anthropic', ({ baseUrl, apiKey, headers, fetch }) =>
    createAnthropic({
      baseURL: `${baseUrl.anthropic}/v1`,
      apiKey: apiKey.anthropic,
      headers: headers.anthropic ?? {},
      fetch,
    })(modelNames.anthropic),
  ),
  'AI SDK over Google': aiSdk('google', ({ baseUrl, apiKey, headers, fetch }) =>
    createGoogleGenerativeAI({
      baseURL: `${baseUrl.google}/v1beta`,
      apiKey: apiKey.google,
      headers: headers.google ?? {},
      fetch,
    })(modelNames.google),
  ),
  'LangChain over OpenAI': langchain('openai', ({ baseUrl, apiKey, headers, fetch }) => {
    const configuration = { baseURL: baseUrl.openai, defaultHeaders: headers.openai, fetch }
    const model = modelNames.openai
    return new ChatOpenAI({ model, apiKey: apiKey.openai, maxRetries: 0, configuration })
  }),
  'LangChain over Anthropic': langchain('anthropic', ({ baseUrl, apiKey, headers, fetch }) => {
    const clientOptions = { defaultHeaders: headers.anthropic, fetch }
    const more = { anthropicApiUrl: baseUrl.anthropic, maxRetries: 0, clientOptions }
    return new ChatAnthropic({ model: modelNames.anthropic, apiKey: apiKey.anthropic, ...more })
  }),
  'LangChain over Google': langchain('google', ({ baseUrl, apiKey, headers }) => {
    const customHeaders = headers.google && { customHeaders: headers.google }
    const more = { baseUrl: baseUrl.google, maxRetries: 0, ...customHeaders }
    return new ChatGoogleGenerativeAI({ model: modelNames.google, apiKey: apiKey.google, ...more })
  }),
}
