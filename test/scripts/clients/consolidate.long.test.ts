import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { reflectionContract } from '#shared/vault/consolidate/output-contract.ts'
import {
  buildKey,
  createTestClient,
  startTestApi,
  startJobWorkers,
  type TestClient,
} from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { startChatProvider, type ChatCall } from '#test/support/doubles/chat-provider.ts'
import { checkOut, ingestTexts, expireLease } from '#test/support/start/consolidation.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

// A process per run of the script: a busy machine needs longer than the 30 s a file has by itself.

const backend = await createTestBackend(t)
await startJobWorkers(backend)
const { base } = await startTestApi(t, backend)
const provider = await startChatProvider(t)

type Ran = { code: number | null; stdout: string; stderr: string }

const script = (args: string[], env: Record<string, string> = {}): Promise<Ran> =>
  begin(args, env).ended

function begin(args: string[], env: Record<string, string> = {}) {
  const { BASE_URL: _base, MEMORY_KEY: _key, OPENAI_API_KEY: _openai, ...rest } = process.env
  const child = spawn(process.execPath, ['scripts/clients/consolidate.ts', ...args], {
    env: { ...rest, DATA_DIR: '/nonexistent', OLLAMA_BASE_URL: `${provider.origin}/v1`, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ran: Ran = { code: null, stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', text => (ran.stdout += text))
  child.stderr.setEncoding('utf8').on('data', text => (ran.stderr += text))
  const ended = new Promise<Ran>(resolve => child.once('close', code => resolve({ ...ran, code })))
  return { child, ended }
}

/** A client with a vault that remembers some things, and the arguments to consolidate it. */
async function vaultOf(texts: readonly string[]): Promise<TestClient & { args: string[] }> {
  const key = await buildKey(backend)
  const client = createTestClient(base, key)
  if (texts.length > 0) await ingestTexts(client, texts)
  return { ...client, args: ['--model', 'ollama/double', '--base-url', base, '--key', key] }
}

const said = ['We adopted a kitten', 'She is called Ada', 'I start in Lisbon on Monday']

const written = (...texts: string[]): string =>
  JSON.stringify({ entries: texts.map(text => ({ text, importance: 7 })) })

/** A model that says how many lines it was given. */
const countsLines = ({ body }: ChatCall): string =>
  written(`It was given ${body.messages[1]!.content.split('\n').length} memories.`)

const reflectionsOf = async (client: TestClient): Promise<string[]> => {
  const { body } = await client.post('/v1/memory/search', {
    query: 'what was given, Ada, Lisbon',
    limit: 50,
    tiers: [2, 3],
  })
  return body.memories.map(
    ({ tier, content }: { tier: number; content: string }) => `${tier} ${content}`,
  )
}

t.test('both tiers, until nothing is left, with progress', async t => {
  const vault = await vaultOf(said)
  provider.script(countsLines)
  const { code, stdout, stderr } = await script(vault.args)
  t.equal(code, 0, stderr)
  t.match(stdout, /^Tier 1: 3 memories, \d+ tokens, 2024-01-01 to 2024-01-03$/m)
  t.match(stdout, /^ {2}1 reflection of tier 2 in [\d.]+ s$/m)
  t.match(stdout, /^ {2}still waiting: 0 raw tokens, 1 reflection of importance 7$/m)
  t.match(stdout, /^Tier 1: no raw memories are waiting$/m)
  t.match(stdout, /^Tier 2: no reflections are waiting$/m)
  t.match(stdout, /4 memories became 2 reflections in 2 batches; the model read 200 tokens/)
  t.same((await reflectionsOf(vault)).sort(), [
    '2 It was given 3 memories.',
    '3 It was given 1 memories.',
  ])
  const again = await script(vault.args)
  t.match(again, { code: 0, stdout: /Nothing was waiting/ })
})

t.test('the model gets the instructions word for word, the memories, and no ids', async t => {
  const vault = await vaultOf(said)
  provider.script(countsLines)
  const { code, stderr } = await script([...vault.args, '--tier', '1'])
  t.equal(code, 0, stderr)
  const [{ path, body } = { path: '', body: undefined }] = provider.calls
  t.equal(path, '/v1/chat/completions')
  t.match(body, { model: 'double', response_format: { type: 'json_schema' } })
  t.equal(body?.messages[0]?.content, reflectionContract(2).instructions)
  t.same(
    body?.messages[1]?.content.split('\n').map(line => JSON.parse(line)),
    said.map((text, day) => ({ text, date: `2024-01-0${day + 1}T09:00:00.000Z` })),
  )
})

t.test('an answer that does not fit is sent back with what is wrong', async t => {
  const vault = await vaultOf(said)
  provider.script(
    () => 'I would rather talk about the weather.',
    () => '{"entries":[{"text":"Ada","importance":11}]}',
    () => 'Here you are:\n```json\n[{"text":" Ada is a kitten. ","importance":4}]\n```',
  )
  const { code, stdout, stderr } = await script([...vault.args, '--tier', '1'])
  t.equal(code, 0, stderr)
  t.match(stdout, /asked 3 times/)
  const [, second, third] = provider.calls
  t.match(second!.body.messages.at(-1)!.content, /cannot be used: the answer is not JSON/)
  t.match(third!.body.messages.at(-1)!.content, /importance must be at most 10/)
  t.same(await reflectionsOf(vault), ['2 Ada is a kitten.'])
})

t.test('a model that never fits: nothing is committed, and it says so', async t => {
  const vault = await vaultOf(said)
  provider.script(() => '{"entries":[]}')
  t.match(await script([...vault.args, '--tier', '1']), {
    code: 1,
    stderr: /no usable answer in 3 tries[\s\S]*--max-tokens/,
  })
  t.same(await reflectionsOf(vault), [])
})

t.test('a provider without structured answers is asked in words', async t => {
  const vault = await vaultOf(said)
  const refuse = ({ body }: ChatCall) => ({
    status: 400,
    message: `response_format ${body.response_format?.type} is not supported`,
  })
  provider.script(refuse, refuse, countsLines)
  const { code, stderr } = await script([...vault.args, '--tier', '1'])
  t.equal(code, 0, stderr)
  t.same(
    provider.calls.map(({ body }) => body.response_format?.type),
    ['json_schema', 'json_object', undefined],
  )
})

t.test('a provider that says no is quoted', async t => {
  const vault = await vaultOf(said)
  provider.script(() => ({ status: 401, message: 'this key is not known' }))
  t.match(await script(vault.args), {
    code: 1,
    stderr: /ollama\/double did not answer: .*this key is not known[\s\S]*provider key/,
  })
})

t.test('every registered provider is reached where its OpenAI-compatible API is', async t => {
  const vault = await vaultOf(said)
  provider.script(countsLines)
  for (const [model, env, path] of [
    ['openai/gpt-5', { OPENAI_BASE_URL: `${provider.origin}/v1` }, '/v1/chat/completions'],
    ['anthropic/claude', { ANTHROPIC_BASE_URL: provider.origin }, '/v1/chat/completions'],
    ['google/gemini', { GOOGLE_BASE_URL: provider.origin }, '/v1beta/openai/chat/completions'],
  ] as const) {
    const name = model.split('/', 1)[0]!.toUpperCase()
    const args = ['--dry-run', '--tier', '1', ...vault.args.slice(2), '--model', model]
    const ran = await script(args, { ...env, [`${name}_API_KEY`]: `secret of ${name}` })
    t.equal(ran.code, 0, ran.stderr)
    t.match(provider.calls.at(-1), { path, authorization: `Bearer secret of ${name}` })
    const { rows } = await backend.postgres.query<{ batch: string }>(
      `select batch from leases where state = 'leased' and expires_at > now()`,
    )
    for (const { batch } of rows) await expireLease(backend, batch)
  }
})

t.test('a dry run shows what would be written and commits nothing', async t => {
  const vault = await vaultOf(said)
  provider.script(countsLines)
  const { code, stdout, stderr } = await script([...vault.args, '--dry-run'])
  t.equal(code, 0, stderr)
  t.match(stdout, /^ {3}7 {2}It was given 3 memories\.$/m)
  t.match(stdout, /Dry run: 1 reflection written, none committed/)
  t.equal(provider.calls.length, 1)
  t.same(await reflectionsOf(vault), [])
})

t.test('--max-batches and --max-tokens bound the work', async t => {
  const long = Array.from(
    { length: 8 },
    (_, n) => `Day ${n}: ${'rain and wind again. '.repeat(90)}`,
  )
  const vault = await vaultOf(long)
  provider.script(countsLines)
  const args = ['--tier', '1', '--max-tokens', '1000', '--max-batches', '2', '--json']
  const { code, stdout, stderr } = await script([...vault.args, ...args])
  t.equal(code, 0, stderr)
  const report = JSON.parse(stdout)
  t.match(report, {
    model: 'ollama/double',
    dry_run: false,
    batches: [
      { tier: 1, created: [{ importance: 7 }], entries: [{ text: /memories/ }], tries: 1 },
      { tier: 1, est_tokens: Number, covers: { from: String, to: String } },
    ],
    reflection: { unconsolidated: { tier2: { count: 2 } } },
  })
  t.ok(report.batches.every((batch: { est_tokens: number }) => batch.est_tokens <= 1_000))
})

t.test('a lease that ran out while the model was thinking is checked out anew', async t => {
  const vault = await vaultOf(said)
  provider.script(async asked => {
    await backend.postgres.query(
      `update leases set expires_at = now() - interval '1 second' where state = 'leased'`,
    )
    return countsLines(asked)
  }, countsLines)
  const { code, stdout, stderr } = await script([...vault.args, '--tier', '1'])
  t.equal(code, 0, stderr)
  t.match(stdout, /expired before it was committed; checking out again/)
  t.equal((await reflectionsOf(vault)).length, 1)
})

t.test('the vault of a running npm start is the default', async t => {
  const vault = await vaultOf(said)
  const dataDir = mkdtempSync(join(tmpdir(), 'vault-consolidate-'))
  t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))
  const key = vault.args.at(-1)!
  writeFileSync(
    join(dataDir, 'credentials.json'),
    JSON.stringify({ base_url: base, memory_key: key }),
  )
  provider.script(countsLines)
  const ran = await script(['--model', 'ollama/double', '--tier', '1'], { DATA_DIR: dataDir })
  t.equal(ran.code, 0, ran.stderr)
  t.equal((await checkOut(vault)).body.batch_id, null)
})

t.test('what the service refuses is said in its words', async t => {
  const vault = await vaultOf([])
  t.match(await script([...vault.args.slice(0, -1), `${vault.args.at(-1)}:read`]), {
    code: 1,
    stderr: /checkout: 403 .*:read/,
  })
  t.match(await script([...vault.args.slice(0, -1), 'mk_unknown0000000000000000000000']), {
    code: 1,
    stderr: /401 Invalid Memory Key/,
  })
})

t.test('help, and every wrong option at once', async t => {
  t.match(await script(['--help']), { code: 0, stdout: /Usage:[\s\S]*--dry-run[\s\S]*Exit code/ })
  const { code, stderr } = await script(['--tier', '3', '--max-batches', '0'])
  t.equal(code, 2, stderr)
  for (const fault of [/--tier/, /--max-batches/, /--base-url and --key/, /--model is missing/]) {
    t.match(stderr, fault)
  }
  t.match(await script(['--modle', 'x']), { code: 2, stderr: /--modle[\s\S]*--help/ })
  const vault = await vaultOf([])
  const at = vault.args.slice(2)
  t.match(await script([...at, '--model', 'nobody/x']), { code: 2, stderr: /openai, anthropic/ })
  t.match(await script([...at, '--model', 'openai/gpt-5']), {
    code: 2,
    stderr: /OPENAI_API_KEY is missing/,
  })
})

t.test('130: stopped with Ctrl-C while the model thinks; another run goes on', async t => {
  const client = await vaultOf(said)
  provider.script(() => new Promise(() => {}))
  const { child, ended } = begin(client.args)
  await waitUntil('the model is asked', () => provider.calls.length > 0)
  child.kill('SIGINT')
  t.match(await ended, { code: 130, stderr: '' })
  t.same(await reflectionsOf(client), [], 'nothing was committed')
  const { rows } = await backend.postgres.query<{ batch: string }>(
    'select batch from leases order by batch desc limit 1',
  )
  await expireLease(backend, rows[0]!.batch)
  provider.script(countsLines)
  t.match(await script([...client.args, '--tier', '1']), { code: 0 })
  t.same(await reflectionsOf(client), ['2 It was given 3 memories.'])
})
