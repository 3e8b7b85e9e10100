import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { vaultClient } from '#api/client/client.ts'
import plugin from '#api/client/openclaw/plugin.ts'
import { buildKey, startJobWorkers, startTestApi } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'
import { providerKey, startModelProvider } from '#test/support/model-provider.ts'
import { waitUntil } from '#test/support/wait-until.ts'

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
  const texts = async () => {
    const { items } = await vault.call('GET /v1/memory/list')
    return items.map(({ text }) => text)
  }
  return { key, vault, texts }
}

// oxlint-disable-next-line typescript/no-explicit-any -- what the host passes to a handler
type Handler = (event: any, context: any) => Promise<any>

/** The interface of OpenClaw's host that plug-ins register with. */
function register(pluginConfig?: object) {
  const hooks = new Map<string, Handler>()
  const tools = new Map<string, { execute(id: string, parameters: object): Promise<object> }>()
  const warnings: string[] = []
  let section: string[] = []
  plugin.register({
    ...(pluginConfig && { pluginConfig: pluginConfig as Record<string, unknown> }),
    logger: { warn: message => warnings.push(message) },
    on: (name: string, handler: Handler) => void hooks.set(name, handler),
    registerTool: tool => tools.set(tool.name, tool),
    registerMemoryCapability: ({ promptBuilder }) => {
      section = promptBuilder({ availableTools: new Set(tools.keys()) })
    },
  })
  const prompt = (event: object, context: object = {}) =>
    hooks.get('before_prompt_build')!({ prompt: 'x', messages: [], ...event }, context)
  const end = (messages: object[], context: object = {}, success = true) =>
    hooks.get('agent_end')!({ messages, success }, context)
  const use = (name: string, parameters: object) => tools.get(name)!.execute('1', parameters)
  return { warnings, tools, section, prompt, end, use }
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
  const { use, tools } = register({ baseUrl: base, key })
  t.same([...tools.keys()], ['memory_recall', 'memory_store', 'memory_forget'])
  t.match(await use('memory_store', { text: 'The boat lies in Lisbon.' }), { details: {} })
  const found = await use('memory_recall', { query: 'where is the boat?', limit: 1 })
  t.match(found, { content: [{ text: /The boat lies in Lisbon/ }] })
  const { details } = found as { details: { memories: { id: string }[] } }
  const { id } = details.memories[0]!
  t.match(await use('memory_forget', { id }), { content: [{ text: 'Deleted.' }] })
  t.match(await use('memory_forget', { id }), { content: [{ text: /No memory/ }] })
  t.same(await texts(), ['My cat is called Ada.'])
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
