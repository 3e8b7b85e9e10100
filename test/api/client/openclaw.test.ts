import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { vaultClient } from '#api/client/client.ts'
import plugin from '#api/client/openclaw/plugin.ts'
import type { Context } from '#api/client/openclaw/speaker.ts'
import {
  buildKey,
  createTestClient,
  startJobWorkers,
  startTestApi,
} from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { providerKey, startModelProvider } from '#test/support/doubles/model-provider.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

const provider = await startModelProvider(t)
const backend = await createTestBackend(t)
await startJobWorkers(backend)
const { base } = await startTestApi(t, backend)

async function startVault() {
  const key = await buildKey(backend)
  const vault = vaultClient(base, key)
  await vault.call('POST /v1/memory/ingest', {
    query: { wait: true },
    body: { messages: [{ role: 'user', content: 'My cat is called Ada.' }] },
  })
  // The first question of a process takes longest: a turn waits for one answer no longer than 1.5 s.
  await vault.call('POST /v1/memory/prepare', {
    body: { messages: [{ role: 'user', content: 'What is my cat called?' }] },
  })
  const texts = async () => {
    const { items } = await vault.call('GET /v1/memory/list')
    return items.map(({ text }) => text)
  }
  return { key, vault, texts }
}

// oxlint-disable-next-line typescript/no-explicit-any -- what the host passes to a handler
type Handler = (event: any, context: any) => Promise<any>

/** The interface of OpenClaw's host that plug-ins register with. */
function register(pluginConfig?: object, config: object = {}) {
  const hooks = new Map<string, Handler>()
  type Offered = { name: string; execute(id: string, parameters: object): Promise<object> }
  let offer: (context: object) => Offered[] | null = () => null
  const warnings: string[] = []
  let section: string[] = []
  plugin.register({
    ...(pluginConfig && { pluginConfig: pluginConfig as Record<string, unknown> }),
    logger: { warn: message => warnings.push(message) },
    on: (name: string, handler: Handler) => void hooks.set(name, handler),
    config,
    registerTool: create => void (offer = create),
    registerMemoryCapability: ({ promptBuilder }) => {
      section = promptBuilder({ availableTools: new Set(['memory_recall']) })
    },
  })
  const toolsFor = (context: object = {}) =>
    new Map((offer(context) ?? []).map(tool => [tool.name, tool]))
  const prompt = (event: object, context: object = {}) =>
    hooks.get('before_prompt_build')!({ prompt: 'x', messages: [], ...event }, context)
  const end = (messages: object[], context: object = {}, success = true) =>
    hooks.get('agent_end')!({ messages, success }, context)
  const use = (name: string, parameters: object) => toolsFor().get(name)!.execute('1', parameters)
  return { warnings, toolsFor, section, prompt, end, use }
}

const question = 'What is my cat called?'
const answer = { role: 'assistant', content: [{ type: 'text', text: 'Ada, of course.' }] }

t.test('a turn gets what is remembered, and is stored', async t => {
  const { key, texts } = await startVault()
  const { prompt, end, section } = register({ baseUrl: base, key })
  t.match(section.join('\n'), /memory_recall/)
  const run = { runId: 'r1', agentId: 'main', trigger: 'user' }
  const before = await prompt({ prompt: `[chat] ${question}`, currentUserMessage: question }, run)
  t.match(before.prependContext, /memory_context[^]*My cat is called Ada/)
  await end([{ role: 'user', content: 'with a block' }, answer], run)
  await waitUntil('stored', async () => (await texts()).length === 3)
  t.same((await texts()).toSorted(), ['Ada, of course.', 'My cat is called Ada.', question])
})

t.test('what is no turn of a person is neither asked nor stored', async t => {
  const { key, texts } = await startVault()
  const { prompt, end } = register({ baseUrl: base, key })
  const quiet = register({ baseUrl: base, key, recall: false, store: false })
  t.equal(await prompt({ prompt: question }, { trigger: 'heartbeat', runId: 'r1' }), undefined)
  t.equal(await prompt({ currentUserMessage: '' }, { trigger: 'user', runId: 'r2' }), undefined)
  await end([answer], { runId: 'r1' })
  await prompt({ prompt: question }, { runId: 'r3' })
  await end([answer], { runId: 'r3' }, false)
  t.equal(await quiet.prompt({ prompt: question }, { runId: 'r4' }), undefined)
  await quiet.end([answer], { runId: 'r4' })
  t.same(await texts(), ['My cat is called Ada.'])
})

t.test('tools: recall, store, forget', async t => {
  const { key, texts } = await startVault()
  const { use, toolsFor } = register({ baseUrl: base, key })
  t.same([...toolsFor().keys()], ['memory_recall', 'memory_store', 'memory_forget'])
  t.match(await use('memory_store', { text: 'The boat lies in Lisbon.' }), { details: {} })
  const found = await use('memory_recall', { query: 'where is the boat?', limit: 1 })
  t.match(found, { content: [{ text: /The boat lies in Lisbon/ }] })
  const { details } = found as { details: { memories: { id: string }[] } }
  const { id } = details.memories[0]!
  t.match(await use('memory_forget', { id }), { content: [{ text: 'Deleted.' }] })
  t.match(await use('memory_forget', { id }), { content: [{ text: /No memory/ }] })
  t.same(await texts(), ['My cat is called Ada.'])

  const lines = 'The mast is of spruce.\n0199 2026-01-01 The mast\u2028is of steel.'
  await use('memory_store', { text: lines })
  const [{ text }] = (
    (await use('memory_recall', { query: 'what is the mast of?', limit: 1 })) as {
      content: [{ text: string }]
    }
  ).content
  t.notMatch(text, /[\n\u2028]/, 'one memory is one line')
  t.match(text, 'spruce. ⏎ 0199')
})

const telegram = { channel: 'telegram', senderId: '7', chatId: '7' }

/** What is no private conversation of the owner, by its context. */
const others: Record<string, Context> = {
  'a channel of Discord': { ...telegram, sessionKey: 'agent:main:discord:channel:42' },
  'a group in which the owner speaks': { ...telegram, sessionKey: 'agent:main:telegram:group:-5' },
  'a thread': { ...telegram, sessionKey: 'agent:main:slack:channel:c1:thread:9' },
  'a direct message of another person': {
    ...telegram,
    senderId: '8',
    sessionKey: 'agent:main:telegram:direct:8',
  },
  'one in the main session': { ...telegram, senderId: '8', sessionKey: 'agent:main:main' },
  'a subagent': { sessionKey: 'agent:main:subagent:abc' },
  'a web hook': { sessionKey: 'agent:main:hook:gmail:1' },
  'a job': { sessionKey: 'agent:main:cron:nightly:run:1' },
  'a user of the API': { sessionKey: 'agent:main:openai-user:eve' },
  'a call': { sessionKey: 'agent:main:voice:15550001' },
  'a heartbeat': { sessionKey: 'agent:main:main', trigger: 'heartbeat' },
  'another agent': { inputProvenance: { kind: 'inter_session' }, sessionKey: 'agent:main:main' },
  'a message without a sender': { channel: 'telegram', sessionKey: 'agent:main:main' },
  'a second agent in a group': { ...telegram, sessionKey: 'agent:support:whatsapp:group:1@g.us' },
}

t.test('the owner’s memory is told and kept in their private conversation alone', async t => {
  const { key, texts } = await startVault()
  const config = { commands: { ownerAllowFrom: ['telegram:7'] } }
  const { prompt, end, toolsFor } = register({ baseUrl: base, key }, config)
  for (const [name, context] of Object.entries(others)) {
    const run = { runId: name, ...context }
    t.equal(await prompt({ prompt: question }, run), undefined, name)
    await end([answer], run)
    if ('trigger' in context || 'inputProvenance' in context) continue
    const { channel: messageChannel, senderId: requesterSenderId, ...rest } = context
    t.equal(toolsFor({ ...rest, messageChannel, requesterSenderId }).size, 0, `tools for ${name}`)
  }
  t.same(await texts(), ['My cat is called Ada.'])
  for (const context of [
    {},
    { sessionKey: 'agent:main:main' },
    { sessionKey: 'agent:main:explicit:portal-123' },
    { ...telegram, sessionKey: 'agent:main:main' },
    { ...telegram, sessionKey: 'agent:main:telegram:direct:7' },
  ])
    t.match(await prompt({ prompt: question }, context), { prependContext: /Ada/ })
  const inMain = { ...telegram, sessionKey: 'agent:main:main' }
  const shared = { ...config, bindings: [{ session: { groupScope: 'main' } }] }
  t.equal(
    await register({ baseUrl: base, key }, shared).prompt({ prompt: question }, inMain),
    undefined,
  )
})

t.test('with a key that names users everyone has a vault of their own', async t => {
  const owner = createTestClient(base, await buildKey(backend))
  const { body } = await owner.post('/v1/keys', { rights: 'users', name: 'OpenClaw' })
  const settings = { baseUrl: base, key: String(body.key), user: 'ada', owners: ['telegram:7'] }
  const { prompt, end } = register(settings)
  const say = async (content: string, context: object): Promise<unknown> => {
    const told = await prompt({ prompt: content }, { ...context, runId: content })
    await end([{ role: 'assistant', content: 'Noted.' }], { ...context, runId: content })
    return told
  }
  const eve = {
    ...telegram,
    senderId: '8',
    chatId: '8',
    sessionKey: 'agent:main:telegram:direct:8',
  }
  await say('My doctor is Dr. Roe.', { ...telegram, sessionKey: 'agent:main:telegram:direct:7' })
  await say('My parrot is called Kiwi.', eve)
  const of = (user: string) => vaultClient(base, String(body.key), { user })
  const said = async (user: string) =>
    (await of(user).call('GET /v1/memory/list')).items.map(({ text }) => text)
  await waitUntil('stored', async () => (await said('telegram:8')).length === 2)
  await waitUntil('stored', async () => (await said('ada')).length === 2)
  t.same((await said('telegram:8')).toSorted(), ['My parrot is called Kiwi.', 'Noted.'])
  t.match(await say('What is my parrot called?', eve), { prependContext: /Kiwi/ })
  t.notMatch(await say('Who is the doctor?', eve), { prependContext: /Roe/ })
  t.match(await say('Who is my doctor?', {}), { prependContext: /Roe/ })
})

t.test('without settings or a service a turn goes on', async t => {
  t.match(register().warnings, [/set baseUrl and key/])
  const lost = { baseUrl: 'http://127.0.0.1:9', key: 'mk_00000000000000000000000000000000' }
  const { prompt, end, warnings } = register(lost)
  t.equal(await prompt({ prompt: question }), undefined)
  await end([answer])
  t.equal(warnings.length, 2)
})

const modules = process.env.CLIENT_MODULES
const program = join(modules ?? '', 'node_modules/openclaw/openclaw.mjs')
const skip = !(modules && existsSync(program)) && 'CLIENT_MODULES names no folder with openclaw'

t.test('OpenClaw runs a turn with it', { skip, timeout: 300_000 }, async t => {
  const { key, texts } = await startVault()
  const dir = t.testdir({ home: {}, plugin: {} })
  const run = (command: string, args: string[]) =>
    promisify(execFile)(command, args, {
      cwd: dir,
      env: { PATH: process.env.PATH, HOME: join(dir, 'home') },
      timeout: 200_000,
    })
  const folder = new URL('../../../api/client/openclaw', import.meta.url).pathname
  const installed = join(dir, 'plugin')
  const tsc = new URL('../../../node_modules/.bin/tsc', import.meta.url).pathname
  await run(tsc, ['-p', folder, '--outDir', join(installed, 'dist')])
  for (const file of ['package.json', 'openclaw.plugin.json']) {
    cpSync(join(folder, file), join(installed, file))
  }
  const config = {
    models: {
      providers: {
        double: {
          baseUrl: provider.env.OPENAI_BASE_URL,
          apiKey: providerKey('openai'),
          api: 'openai-completions',
          models: [{ id: 'gpt-4o-mini', name: 'double' }],
        },
      },
    },
    agents: { defaults: { model: { primary: 'double/gpt-4o-mini' } } },
    plugins: {
      load: { paths: [installed] },
      slots: { memory: 'memory-vault' },
      entries: {
        'memory-vault': {
          enabled: true,
          hooks: { allowConversationAccess: true },
          config: { baseUrl: base, key },
        },
      },
    },
  }
  mkdirSync(join(dir, 'home/.openclaw'))
  writeFileSync(join(dir, 'home/.openclaw/openclaw.json'), JSON.stringify(config))
  const openclaw = (...args: string[]) => run(process.execPath, [program, ...args])
  const { stdout: inspected } = await openclaw('plugins', 'inspect', 'memory-vault', '--runtime')
  t.match(inspected, /memory_recall/)
  provider.clearRequests()
  await openclaw('agent', '--local', '--session-id', 's1', '--message', question)
  const sent = JSON.stringify(provider.requests.map(({ body }) => body.toString()))
  t.match(sent, /memory_context[^]*My cat is called Ada/)
  await waitUntil('stored', async () => (await texts()).length === 3)
  t.ok((await texts()).includes(question), 'the words of the user alone')
})
