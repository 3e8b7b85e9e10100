// LibreChat's own packages as its server uses them: it reads librechat.yaml, runs the agent and asks for a title and labels.
// A request has the person, the conversation and their words. The server's headers come from its yaml.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { HumanMessage } from '@librechat/agents/langchain/messages'
import { Providers, Run, TitleMethod } from '@librechat/agents'
import { load } from 'js-yaml'
import { configSchema, extractEnvVariable } from 'librechat-data-provider'

const config = configSchema.strict().parse(load(readFileSync(process.env.CONFIG_PATH, 'utf8')))
const [endpoint] = config.endpoints.custom

/** What packages/api/src/utils/env.ts of LibreChat puts into the templates of a header. */
const fill = (value, { person, conversation }) =>
  extractEnvVariable(value)
    .replaceAll('{{LIBRECHAT_USER_ID}}', person)
    .replaceAll('{{LIBRECHAT_BODY_CONVERSATIONID}}', conversation)

async function turn(asked) {
  const headers = Object.entries(endpoint.headers).map(([name, value]) => [
    name,
    fill(value, asked),
  ])
  const clientOptions = {
    model: 'openai/gpt-4o',
    apiKey: extractEnvVariable(endpoint.apiKey),
    streaming: true,
    maxRetries: 0,
    user: asked.person,
    ...asked.options,
    configuration: {
      baseURL: extractEnvVariable(endpoint.baseURL),
      defaultHeaders: Object.fromEntries(headers),
      maxRetries: 0,
    },
  }
  const provider = Providers.OPENAI
  const runId = crypto.randomUUID()
  const run = await Run.create({
    runId,
    graphConfig: { type: 'standard', llmConfig: { provider, ...clientOptions } },
    returnContent: true,
  })
  const configurable = { thread_id: asked.conversation, user_id: asked.person }
  const messages = [new HumanMessage(asked.words)]
  const options = { configurable, version: 'v2', streamMode: 'values' }
  const content = await run.processStream({ messages }, options)
  const answer = content.map(part => part?.text ?? '').join('')
  if (endpoint.titleConvo)
    await askHelpers(run, { provider, clientOptions, inputText: asked.words, answer })
  return answer
}

/** A title by each method that the yaml may name, and the labels that its pages show above tools and thoughts. */
async function askHelpers(run, { provider, clientOptions, inputText, answer }) {
  const call = { provider, clientOptions: { ...clientOptions, streaming: false }, chainOptions: {} }
  for (const titleMethod of [TitleMethod.COMPLETION, TitleMethod.STRUCTURED]) {
    const contentParts = [{ type: 'text', text: answer }]
    await run.generateTitle({ ...call, inputText, contentParts, titleMethod }).catch(() => {})
  }
  const tool = {
    toolName: 'weather',
    toolInput: { city: 'Lisbon' },
    toolOutput: 'sunny',
    status: 'success',
  }
  await run.generateActivityLabel({ ...call, entries: [tool], lastAssistantText: answer })
  await run.generateReasoningLabel({
    ...call,
    visibleReasoning: 'The person looks for a key, so the place matters.',
    reasoningStepId: 'step-1',
    revision: 1,
  })
}

async function respond(request, response) {
  if (request.method === 'GET') return response.end('ready')
  try {
    let body = ''
    for await (const chunk of request) body += chunk
    response.end(await turn(JSON.parse(body)))
  } catch (error) {
    response.statusCode = 500
    response.end(error.message)
  }
}

createServer((request, response) => void respond(request, response)).listen(
  Number(process.argv[2]),
  '127.0.0.1',
)
