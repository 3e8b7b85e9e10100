import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { VaultProcessor } from '#api/client/adapters/mastra-processor.ts'
import { vaultClient, type VaultClient } from '#api/client/client.ts'
import { buildKey, startJobWorkers, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { providerKey, startModelProvider } from '#test/support/doubles/model-provider.ts'

const provider = await startModelProvider(t)
const backend = await createTestBackend(t)
await startJobWorkers(backend)
const { base } = await startTestApi(t, backend)

const message = (role: string, text: string) => ({
  role,
  content: { format: 2, parts: [{ type: 'text', text }] },
})

async function startVault(): Promise<VaultClient> {
  const vault = vaultClient(base, await buildKey(backend))
  await vault.call('POST /v1/memory/ingest', {
    query: { wait: true },
    body: { messages: [{ role: 'user', content: 'My cat is called Ada.' }] },
  })
  return vault
}

async function storedTexts(vault: VaultClient): Promise<string[]> {
  const { items } = await vault.call('GET /v1/operations')
  for (const { operation_id: id } of items) {
    for (;;) {
      const { state } = await vault.call('GET /v1/operations/:id', { params: { id } })
      if (state === 'done') break
      await new Promise(resolve => setTimeout(resolve, 20))
    }
  }
  const page = await vault.call('GET /v1/memory/list', { query: { limit: 200 } })
  return page.items.map(({ text }) => text)
}

t.test('the block is a further system message, and the turn is stored', async t => {
  const vault = await startVault()
  const processor = new VaultProcessor(vault)
  const messages = [message('user', 'What is my cat called?')]
  const systemMessages = [{ role: 'system', content: 'You are terse.' }]
  const prepared = await processor.processInput({ messages, systemMessages })
  t.same(prepared.messages, messages)
  t.same(prepared.systemMessages[0], systemMessages[0])
  t.match(prepared.systemMessages[1]?.content, /memory_context[^]*My cat is called Ada/)
  const result = { text: 'Ada.' }
  const messageList = { get: { input: { db: () => messages } } }
  const answered = [message('assistant', 'Ada.')]
  t.same(await processor.processOutputResult({ messages: answered, messageList, result }), answered)
  t.ok((await storedTexts(vault)).includes('What is my cat called?'))
})

t.test('each resource has a vault of its own, or none', async t => {
  const [ada, eve] = [await startVault(), vaultClient(base, await buildKey(backend))]
  const asked = (resourceId: string) => ({
    messages: [{ ...message('user', 'What is my cat called?'), resourceId }],
    systemMessages: [],
  })
  const several = new VaultProcessor(resource => ({ ada, eve })[resource])
  t.match((await several.processInput(asked('ada'))).systemMessages, [{ content: /Ada/ }])
  for (const resource of ['eve', 'bo'])
    t.same((await several.processInput(asked(resource))).systemMessages, [])
  const faults: unknown[] = []
  const options = { resource: 'ada', onError: (error: unknown) => faults.push(error) }
  const one = new VaultProcessor(ada, options)
  t.match((await one.processInput(asked('ada'))).systemMessages, [{ content: /Ada/ }])
  t.same((await one.processInput(asked('eve'))).systemMessages, [])
  const { messages } = asked('eve')
  const messageList = { get: { input: { db: () => messages } } }
  await one.processOutputResult({ messages: [], messageList, result: { text: 'Tom.' } })
  t.equal(faults.length, 2)
  t.same(await storedTexts(ada), ['My cat is called Ada.'])
  t.same((await new VaultProcessor(ada).processInput(asked('ada'))).systemMessages, [])
})

t.test('without a vault nothing changes', async t => {
  const faults: unknown[] = []
  const lost = vaultClient('http://127.0.0.1:9', 'mk_00000000000000000000000000000000')
  const processor = new VaultProcessor(lost, { onError: error => faults.push(error) })
  const request = { messages: [message('user', 'Hello')], systemMessages: [] }
  t.same(await processor.processInput(request), request)
  t.equal(faults.length, 1)
})

const modules = process.env.CLIENT_MODULES
const isThere = modules !== undefined && existsSync(join(modules, 'node_modules/@mastra/core'))
const skip = !isThere && 'CLIENT_MODULES names no folder with @mastra/core'

t.test('an agent of Mastra remembers with it', { skip }, async t => {
  const loader = join(modules!, 'load-mastra.mjs')
  writeFileSync(loader, "export { Agent } from '@mastra/core/agent'\n")
  const { Agent } = await import(pathToFileURL(loader).href)
  const vault = await startVault()
  const processor = new VaultProcessor(vault)
  provider.clearRequests()
  const agent = new Agent({
    id: 'terse',
    name: 'Terse',
    instructions: 'You are terse.',
    model: {
      providerId: 'compatible',
      modelId: 'gpt-4o-mini',
      url: provider.env.OPENAI_BASE_URL,
      apiKey: providerKey('openai'),
    },
    inputProcessors: [processor],
    outputProcessors: [processor],
  })
  const { text } = await agent.generate('What is my cat called?')
  const sent = JSON.stringify(provider.requests.map(({ body }) => body.toString()))
  t.match(sent, /You are terse[^]*memory_context[^]*My cat is called Ada[^]*What is my cat called/)
  const expected = ['My cat is called Ada.', 'What is my cat called?', text]
  t.same((await storedTexts(vault)).toSorted(), expected.toSorted())
  const stranger = { memory: { resource: 'eve', thread: 't-1' } }
  provider.clearRequests()
  await agent.generate('What is the cat called?', stranger)
  const told = JSON.stringify(provider.requests.map(({ body }) => body.toString()))
  t.notMatch(told, 'memory_context', 'another resource than that of the vault')
  const streamed = await agent.stream('And where does Ada sleep?')
  t.not(await streamed.text, '')
  t.ok((await storedTexts(vault)).includes('And where does Ada sleep?'))
})
