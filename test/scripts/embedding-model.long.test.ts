import { execFile, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { cpSync, existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { createServer } from 'node:http'
import { homedir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { listen } from '#test/support/start/listen.ts'
import { createKeyedClient } from '#test/support/start/memory-file.ts'
import { ingestText, searchTexts, startService as npmStart } from '#test/support/start/npm-start.ts'
import { startService } from '#test/support/start/start-service.ts'

/** The models of the command as they are, with their real weights from a registry; nothing stands in for one. */

t.setTimeout(1_200_000)

/** Kept between runs, as the other programs of registries. */
const cache = process.env.PROGRAMS_CACHE ?? join(homedir(), '.cache')
const models = join(cache, 'memory-vault', 'models')
const e5 = 'multilingual-e5-small'
const miniLm = 'all-minilm-l6-v2'

type Outcome = { code: number; output: string }

const command = (args: string[], env: Record<string, string> = {}): Promise<Outcome> =>
  new Promise(resolve => {
    const all = { ...process.env, XDG_CACHE_HOME: cache, NODE_OPTIONS: '', ...env }
    execFile(
      process.execPath,
      ['scripts/embedding-model.ts', ...args],
      { env: all },
      (error, stdout, stderr) =>
        resolve({ code: error ? Number(error.code) : 0, output: stdout + stderr }),
    )
  })

/** A registry that does not answer, a Python that is missing and a version that was withdrawn are no fault here. */
const fetched = new Map<string, string | false>()
for (const name of [e5, miniLm]) {
  const { code, output } = await command([name, '--fetch-only'])
  if (code !== 0 && !/could not install it/.test(output)) throw new Error(output)
  fetched.set(name, code !== 0 && output.trim())
}

/** The server of a model, until the test ends; its address. */
async function serve(t: Test, name: string): Promise<string> {
  const args = ['scripts/embedding-server.ts', join(models, name), '--port', '0']
  const child = spawn(process.execPath, args, {
    env: { ...process.env, XDG_CACHE_HOME: cache, NODE_OPTIONS: '' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill())
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  return /http:\S+/.exec(String(line))![0]
}

t.test(
  'npm start serves a fetched model: a question finds an answer in another language',
  {
    skip: fetched.get(e5)!,
  },
  async t => {
    const dataDir = t.testdir({})
    t.match(await command([e5], { DATA_DIR: dataDir }), {
      code: 0,
      output: /offline\/multilingual/,
    })
    const env = { XDG_CACHE_HOME: cache }
    const { client, child, exit, output } = await npmStart(t, dataDir, env)
    for (const text of [
      'My daughter Klara plays the cello.',
      'The garage repaired the brakes on Tuesday.',
      'We painted the kitchen yellow.',
    ])
      await ingestText(client, text)
    t.match(await searchTexts(client, 'Welches Instrument spielt meine Tochter?'), [/cello/])
    const { body } = await client.get('/v1/account/models')
    t.comment(JSON.stringify(body))
    child.kill('SIGTERM')
    t.equal(await exit, 0)
    t.notMatch(output(), /did not answer|failed/)

    t.match(await command(['local'], { DATA_DIR: dataDir }), { code: 0, output: /built-in/ })
    const again = await npmStart(t, dataDir, env)
    t.match(await searchTexts(again.client, 'Welches Instrument spielt meine Tochter?'), [/cello/])
    again.child.kill('SIGTERM')
    t.equal(await again.exit, 0)
  },
)

for (const [name, window] of [
  [e5, 512],
  [miniLm, 256],
] as const) {
  t.test(`${name}: its forms, its window, its answers`, { skip: fetched.get(name)! }, async t => {
    const base = await serve(t, name)
    const post = async (body: unknown) => {
      const sent = { method: 'POST', body: JSON.stringify(body) }
      const response = await fetch(`${base}/embeddings`, sent)
      return { status: response.status, body: (await response.json()) as Embeddings }
    }
    const embed = async (...input: string[]) => {
      const { body } = await post({ model: name, input, encoding_format: 'float' })
      return body.data!.map(({ embedding }) => embedding as number[])
    }
    const [question, answer, other, same] = await embed(
      'query: What is my cat called?',
      'passage: My cat is called Ada.',
      'passage: The tax report is due on Friday.',
      'passage: My cat is called Ada.',
    )
    t.equal(question!.length, 384)
    t.ok(Math.abs(cosine(answer!, answer!) - 1) < 1e-4, 'of unit length')
    t.ok(cosine(question!, answer!) > cosine(question!, other!) + 0.05)
    t.same(answer, same, 'the same text has the same vector')
    const [asQuery, asPassage] = await embed('query: Ada', 'passage: Ada')
    t.ok(cosine(asQuery!, asPassage!) < 0.999, 'a query is embedded as one')

    const long = 'The violin stands in the attic. '.repeat(window)
    for (const [status, body] of [
      [413, { model: name, input: ['x', long] }],
      [400, { model: name }],
      [400, { model: name, input: [[1, 2]] }],
      [400, null],
      [404, { model: 'another', input: 'x' }],
    ] as const)
      t.equal((await post(body)).status, status, JSON.stringify(body)?.slice(0, 60))

    const env = { PROVIDERS: 'offline', OFFLINE_BASE_URL: base, EMBEDDINGS: `offline/${name}` }
    const { backend, base: url } = await startService(t, { env, jobs: ['ingest'] })
    const client = await createKeyedClient(backend, url)
    const texts = ['They like quiet zoos.', `${long.slice(0, 9_000)} Its bow is of pernambuco.`]
    for (const content of texts)
      await client.post('/v1/memory/ingest?wait=true', { messages: [{ role: 'user', content }] })
    const found = await client.post('/v1/memory/search', {
      query: 'Where is the violin?',
      limit: 1,
    })
    t.match(found.body.memories, [{ content: /violin/, similarity: Number }])
  })
}

t.test('a folder, and a hub that tells its checksums', { skip: fetched.get(miniLm)! }, async t => {
  const home = t.testdir({ data: {}, 'memory-vault': { models: {} } })
  const folder = join(home, 'my model')
  cpSync(join(models, miniLm), folder, { recursive: true })
  const dataDir = join(home, 'data')
  t.match(await command([folder], { DATA_DIR: dataDir }), {
    code: 0,
    output: /my-model embeds: 384/,
  })

  const paths = ['config.json', 'tokenizer.json', 'tokenizer_config.json']
  const weights = 'onnx/model_quantized.onnx'
  let damaged = false
  const hub = createServer((request, response) => {
    const { pathname } = new URL(request.url!, 'http://hub')
    if (pathname.endsWith('/revision/main')) return response.end('{"sha":"abc123"}')
    if (pathname.includes('/tree/abc123'))
      return response.end(JSON.stringify([...paths, weights].map(entry)))
    const bytes = readFileSync(join(folder, pathname.split('/resolve/abc123/')[1]!))
    response.end(damaged ? bytes.subarray(1) : bytes)
  })
  const entry = (path: string) => {
    const bytes = readFileSync(join(folder, path))
    const blob = createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex')
    const oid = createHash('sha256').update(bytes).digest('hex')
    return { type: 'file', path, oid: blob, ...(path === weights && { lfs: { oid } }) }
  }
  const HF_ENDPOINT = await listen(t, hub)
  damaged = true
  for (const entry of readdirSync(models).filter(name => /^node_modules$|^installed-/.test(name)))
    symlinkSync(join(models, entry), join(home, 'memory-vault/models', entry))
  const env = { XDG_CACHE_HOME: home, HF_ENDPOINT, DATA_DIR: dataDir }
  const name = 'hub:someone/mini-lm'
  t.match(await command([name], env), { code: 1, output: /has other bytes than/ })
  t.notOk(existsSync(join(home, 'memory-vault/models/someone/mini-lm')), 'nothing half made')
  damaged = false
  t.match(await command([name], env), { code: 0, output: /EMBEDDINGS=offline\/someone\/mini-lm/ })
})

t.test('what cannot be had is named', async t => {
  t.match(await command(['no-such-model']), { code: 1, output: /no model and no folder/ })
  t.match(await command([]), { code: 2, output: /Name one model/ })
  t.match(await command([t.testdir({})]), { code: 1, output: /has no onnx/ })
})

type Embeddings = { data?: { embedding: number[] | string }[] }

const cosine = (one: readonly number[], other: readonly number[]): number =>
  one.reduce((sum, value, i) => sum + value * other[i]!, 0)
