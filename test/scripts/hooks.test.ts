import { execFile } from 'node:child_process'
import { createServer } from 'node:http'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import t, { type Test } from 'tap'
import { memoryVault } from '#scripts/hooks/opencode.ts'
import {
  buildKey,
  createTestClient,
  startJobWorkers,
  startTestApi,
} from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { findOldNode, installPackage } from '#test/support/start/installed-package.ts'
import { listen } from '#test/support/start/listen.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

const backend = await createTestBackend(t)
await startJobWorkers(backend)
const { base } = await startTestApi(t, backend)
const modules = t.testdir({})
const { name, bin, dependencies } = await installPackage('scripts/hooks', modules)
const main = join(modules, name, bin!['memory-vault-hooks']!)
t.equal(dependencies, undefined)

type Row = { text: string; role: string; metadata: Record<string, string> }
type Ended = { code: number | null; out: string; error: string }

/** A home with a connected program, and the vault of its key. */
async function createHome(t: Test, client: string, url = base) {
  const home = mkdtempSync(join(tmpdir(), 'hooks-'))
  // What sends an exchange runs by itself, and may still write its journal.
  t.teardown(() => rm(home, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }))
  for (const name of ['a', 'b']) {
    mkdirSync(join(home, name, '.git'), { recursive: true })
    const config = `[remote "origin"]\nurl = git@h.org:acme/${name}.git`
    writeFileSync(join(home, name, '.git/config'), config)
  }
  const key = await buildKey(backend)
  const connect = (base_url: string, program = client, with_ = key): void => {
    mkdirSync(join(home, '.config/memory-vault/hooks'), { recursive: true })
    const file = join(home, `.config/memory-vault/hooks/${program}.json`)
    writeFileSync(file, JSON.stringify({ base_url, key: with_ }), { mode: 0o600 })
  }
  connect(url)
  let patience = '60000'
  const execute = (args: string[], input = '', node = process.execPath): Promise<Ended> =>
    new Promise(resolve => {
      const env = { PATH: process.env.PATH, HOME: home, MEMORY_VAULT_HOOK_MS: patience }
      const options = { env }
      const words = ['-u', 'NODE_OPTIONS', node, main, ...args]
      const child = execFile('env', words, options, (_, out, error) =>
        resolve({ code: child.exitCode, out, error }),
      )
      child.stdin!.end(input)
    })
  const vault = createTestClient(base, key)
  return {
    home,
    connect,
    execute,
    beImpatient: () => void (patience = '300'),
    hook: (hook_event_name: string, fields: object, node?: string, program = client) => {
      const input = { session_id: 's-1', cwd: join(home, 'a'), hook_event_name, ...fields }
      return execute(['run', program], JSON.stringify(input), node)
    },
    /** What is stored, once it is as many memories. */
    async stored(count: number): Promise<Row[]> {
      for (;;) {
        const { body } = await vault.get('/v1/memory/list')
        const { items } = body as { items: Row[] }
        if (items.length >= count) return items
        await delay(50)
      }
    },
    waiting: (): string[] => readdirSync(join(home, '.local/state/memory-vault/hooks/waiting')),
  }
}

const silent = { code: 0, out: '', error: '' }

t.test('a turn is stored once, and recalled in its repository alone', async t => {
  const { home, hook, stored, execute } = await createHome(t, 'codex')
  const prompt = 'Remember for later: our staging database is called heron-42.'
  const asked = { prompt, turn_id: 't-1' }
  const ended = { turn_id: 't-1', last_assistant_message: 'Noted: heron-42.' }
  t.match(await hook('UserPromptSubmit', asked), silent, 'nothing is known yet')
  t.match(await hook('Stop', ended), silent)
  t.match(await hook('Stop', ended), silent, 'again')
  const rows = await stored(2)
  t.same(rows.map(({ role, text }) => `${role}: ${text}`).toSorted(), [
    'assistant: Noted: heron-42.',
    `user: ${prompt}`,
  ])
  const metadata = { repository: 'h.org/acme/a', agent_id: 'codex', run_id: 's-1' }
  for (const row of rows) t.match(row.metadata, metadata)

  const question = { prompt: 'What is our staging database called?', session_id: 's-2' }
  const recalled = await hook('UserPromptSubmit', question)
  const { hookSpecificOutput } = JSON.parse(recalled.out) as { hookSpecificOutput: object }
  t.match(hookSpecificOutput, {
    hookEventName: 'UserPromptSubmit',
    additionalContext: /^<memory_context>[^]*heron-42/,
  })
  t.match(await hook('UserPromptSubmit', question), silent, 'two hooks of one prompt say it once')
  const elsewhere = { ...question, session_id: 's-3', cwd: join(home, 'b') }
  t.match(await hook('UserPromptSubmit', elsewhere), silent, 'not in another repository')
  const { out } = await execute(['status'])
  t.match(out, /codex: http[^]*recalled: 1 times[^]*stored: 1 times[^]*assistant: Noted: heron-42/)
  t.match(out, /0 exchanges wait/)
})

t.test('what is about the person is told in every repository, once a session', async t => {
  const { home, hook, stored } = await createHome(t, 'claude-code')
  const prompt = 'Always answer me in French, please. The port of the api is 5544.'
  await hook('UserPromptSubmit', { prompt })
  await hook('Stop', { last_assistant_message: 'Oui.' })
  await stored(2)
  const other = { session_id: 's-2', cwd: join(home, 'b'), source: 'startup' }
  const { out } = await hook('SessionStart', other)
  t.match(out, /"hookEventName":"SessionStart","additionalContext":".*in French/)
  t.notMatch(out, '5544')
  t.match(await hook('SessionStart', { ...other, source: 'resume' }), silent)
})

t.test('a service that is away or slow is not noticed, and nothing is lost', async t => {
  const { hook, connect, stored, execute, waiting, beImpatient } = await createHome(
    t,
    'codex',
    'http://127.0.0.1:9',
  )
  t.match(await hook('UserPromptSubmit', { prompt: 'The canoe is red.' }), silent)
  t.match(await hook('Stop', { last_assistant_message: 'A red canoe.' }), silent)
  const never = await listen(t, createServer())
  connect(never)
  beImpatient()
  t.match(await hook('UserPromptSubmit', { prompt: 'The kayak is blue.' }), silent)
  t.match(await hook('Stop', { last_assistant_message: 'A blue kayak.' }), silent)
  t.equal(waiting().length, 2)
  const { out } = await execute(['status'])
  t.match(out, /prompts without memory: 2 times[^]*gave no answer in 300 ms/)
  t.match(out, /waiting: 2 turns wait, since 20[^]*2 exchanges wait/)
  connect(base)
  await execute(['send'])
  t.equal((await stored(4)).length, 4)
  t.same(waiting(), [])
  t.match(await execute(['run', 'codex'], 'garbage'), silent)
  t.match(await execute(['run', 'emacs'], '{}'), silent)
  t.match(await execute([]), { code: 2, error: /Usage/ })
})

t.test('each program is answered in its own form', async t => {
  const cursor = await createHome(t, 'cursor')
  const asked = { prompt: 'The kettle is green.', generation_id: 'g-1' }
  const first = await cursor.hook('beforeSubmitPrompt', asked)
  t.match(first, { code: 0, out: '{"continue":true}' })
  t.match(await cursor.hook('afterAgentResponse', { text: 'I look.' }), { out: '{}' })
  await cursor.hook('afterAgentResponse', { text: 'A green kettle.' })
  await cursor.hook('stop', { generation_id: 'g-1' })
  t.match(await cursor.stored(2), [{ text: 'A green kettle.' }, { text: asked.prompt }])
  const again = { prompt: 'Which colour has the kettle?', session_id: 's-2' }
  const { out } = await cursor.hook('beforeSubmitPrompt', again)
  t.match(JSON.parse(out), { continue: true, additional_context: /green/ })

  const transcript = join(t.testdir({}), 'transcript.jsonl')
  const gemini = await createHome(t, 'gemini')
  const lines = [
    { type: 'user', content: [{ text: 'The lamp is yellow.' }] },
    { type: 'gemini', content: 'I look.' },
    { type: 'user', content: [{ functionResponse: {} }] },
    { type: 'gemini', content: 'A yellow lamp.' },
    { $set: {} },
  ]
  writeFileSync(transcript, lines.map(line => `${JSON.stringify(line)}\n`).join(''))
  await gemini.hook('BeforeAgent', { prompt: 'The lamp is yellow.' })
  const end = { transcript_path: transcript, prompt_response: 'I look.\nA yellow lamp.' }
  t.match(await gemini.hook('AfterAgent', end), silent)
  t.match(await gemini.stored(2), [{ text: 'A yellow lamp.' }, {}])

  const vscode = await createHome(t, 'vscode')
  const said = [
    { type: 'user.message', data: { content: 'The gate is white.' } },
    { type: 'assistant.message', data: { content: 'A white gate.', toolRequests: [] } },
  ]
  writeFileSync(transcript, said.map(line => JSON.stringify(line)).join('\n'))
  await vscode.hook('UserPromptSubmit', { prompt: 'The gate is white.' })
  await vscode.hook('Stop', { transcript_path: transcript })
  t.match(await vscode.stored(2), [{ text: 'A white gate.' }, {}])
  const gate = await vscode.hook('UserPromptSubmit', {
    prompt: 'Which colour has the gate?',
    session_id: 's-2',
  })
  t.match(JSON.parse(gate.out), { additionalContext: /white/, hookSpecificOutput: {} })
})

t.test('opencode 2 is told with each call of a turn, and its turn is stored', async t => {
  const { home, hook, stored } = await createHome(t, 'opencode')
  await hook('UserPromptSubmit', { prompt: 'The boat is called Ada.' })
  await hook('Stop', { last_assistant_message: 'Ada it is.' })
  await stored(2)
  type Change = (event: object) => Promise<void>
  let change: Change = () => Promise.reject(new Error('no hook'))
  const plugin = memoryVault([
    'env',
    '-u',
    'NODE_OPTIONS',
    `HOME=${home}`,
    'MEMORY_VAULT_HOOK_MS=60000',
    process.execPath,
    main,
    'run',
    'opencode',
  ])
  const call = () => [
    { role: 'user', content: [{ type: 'text', text: 'What is the boat called?' }] },
  ]
  const calls = [call(), call()]
  await plugin.setup({
    location: { directory: join(home, 'a') },
    session: {
      hook: (_: string, given: unknown) => Promise.resolve((change = given as Change)),
      get: () => Promise.resolve({}),
    },
    event: {
      async *subscribe() {
        await delay(0)
        for (const messages of calls) await change({ sessionID: 's-2', messages })
        yield { type: 'session.text.ended', data: { sessionID: 's-2', text: 'Ada.' } }
        yield { type: 'session.execution.succeeded', data: { sessionID: 's-2' } }
      },
    },
  })
  t.match((await stored(4)).map(({ text }) => text).toSorted(), ['Ada it is.', 'Ada.'])
  t.match(calls[0]![0]!.content, [{}, { text: /<memory_context>[^]*Ada/ }])
  t.same(calls[1], calls[0])
  await plugin.setup({})
})

t.test('it runs on an older Node', async t => {
  const node = await findOldNode()
  if (!node) return t.pass('skipped: this machine has no Node older than the project’s')
  const { hook, stored } = await createHome(t, 'codex')
  t.match(await hook('UserPromptSubmit', { prompt: 'The door is black.' }, node), silent)
  t.match(await hook('Stop', { last_assistant_message: 'Black.' }, node), silent)
  await stored(2)
})

t.test('a program whose key has ended holds back no other, and status says why', async t => {
  const { connect, hook, execute, stored, waiting, home } = await createHome(t, 'codex')
  const claude = 'claude-code'
  connect(base, claude)
  connect('http://127.0.0.1:9', 'codex')
  connect(base, 'gemini', `mk_${'0'.repeat(32)}`)
  for (const turn of [1, 2]) {
    for (const program of ['codex', 'gemini', claude]) {
      const about = { session_id: `${program}-${turn}` }
      await hook(
        'UserPromptSubmit',
        { ...about, prompt: `The ${program} ${turn} is red.` },
        undefined,
        program,
      )
      await hook('Stop', { ...about, last_assistant_message: 'Red.' }, undefined, program)
    }
  }
  await execute(['send'])
  const rows = await stored(4)
  t.same(
    rows.filter(({ metadata }) => metadata.agent_id !== claude),
    [],
  )
  t.equal(waiting().length, 4)
  const { out } = await execute(['status'])
  t.match(out, /codex: [^]*without memory: 2 times[^]*2 turns wait, since [^\n]*bad port/)
  t.match(out, /gemini: [^]*without memory: 2 times, [^\n]*key[^]*2 turns wait, since [^\n]*key/i)
  await rm(join(home, '.config/memory-vault/hooks/gemini.json'))
  t.match((await execute(['status'])).out, /gemini is not connected: 2 turns wait/)
})

t.test('a turn belongs to where it began, and its last answer counts', async t => {
  const { home, hook, stored } = await createHome(t, 'claude-code')
  await hook('UserPromptSubmit', { prompt: 'Which port has the staging service?' })
  const elsewhere = { cwd: join(home, 'b') }
  await hook('Stop', { ...elsewhere, last_assistant_message: 'It uses 5544.' })
  await stored(2)
  const ended = { ...elsewhere, stop_hook_active: true }
  await hook('Stop', { ...ended, last_assistant_message: 'I checked again: it uses 5545.' })
  const rows = async () => (await stored(2)).map(({ text }) => text).toSorted()
  const last = ['I checked again: it uses 5545.', 'Which port has the staging service?']
  await waitUntil('the first answer is gone', async () => isDeepStrictEqual(await rows(), last))
  for (const { metadata } of await stored(2)) t.match(metadata, { repository: 'h.org/acme/a' })
  await hook('UserPromptSubmit', { prompt: '<task-notification>Done.</task-notification>' })
  t.match(await hook('Stop', { ...ended, last_assistant_message: 'The build is done.' }), silent)
  t.same(await rows(), last, 'what a program has asked is no turn of a person')
})

t.test('a folder that claims the name of another repository is asked about', async t => {
  const { home, hook, stored, execute } = await createHome(t, 'claude-code')
  await hook('UserPromptSubmit', { prompt: 'The canary of this service is called Zip.' })
  await hook('Stop', { last_assistant_message: 'Zip.' })
  await stored(2)
  const copy = join(home, 'copy')
  cpSync(join(home, 'a'), copy, { recursive: true })
  const asked = { session_id: 's-2', cwd: copy, prompt: 'What is the canary called?' }
  const { out } = await hook('UserPromptSubmit', asked)
  t.match(JSON.parse(out), { systemMessage: /copy says that it is h\.org\/acme\/a, which/ })
  t.notMatch(out, 'Zip')
  await execute(['allow', copy])
  t.match((await hook('UserPromptSubmit', { ...asked, session_id: 's-3' })).out, 'Zip')
})

t.test('a person says that a memory is wrong, by its words or its id', async t => {
  const { execute, hook, stored } = await createHome(t, 'codex')
  const prompt = 'Remember for later: our staging database is called heron-42.'
  await hook('UserPromptSubmit', { prompt, turn_id: 't-1' })
  await hook('Stop', { turn_id: 't-1', last_assistant_message: 'Noted: heron-42.' })
  const rows = (await stored(2)) as (Row & { memory_id: string })[]
  const question = { prompt: 'What is our staging database called?', session_id: 's-2' }
  const give = async (...words: string[]) => (await execute(['feedback', ...words])).out
  t.match(await give('wrong', 'heron-42'), /^Several memories have these words/)
  t.match(await give('wrong', 'no', 'such', 'words'), 'No memory has these words: no such words')
  t.equal(
    await give('wrong', 'staging database is called'),
    '1 memory is wrong, told no more.\n',
    'by words',
  )
  const noted = rows.find(({ role }) => role === 'assistant')!.memory_id
  t.match(await give('not_mine', noted), /^1 memory is not mine, told no more/, 'by id')
  t.match(await hook('UserPromptSubmit', question), silent)
  t.equal(await give('right', 'staging database is called'), '1 memory is told.\n')
  const again = await hook('UserPromptSubmit', { ...question, session_id: 's-3' })
  t.match(again.out, 'heron-42')
  t.equal((await execute(['feedback', 'bad', noted])).code, 2)
})
