import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { createKeyedClient } from '#test/support/memory-file.ts'
import { startService } from '#test/support/start-service.ts'

/**
 * A package of the interface of `@huggingface/transformers`: words are tokens, and their letters the vector. It
 * refuses what the real one would: to be offline without its settings, and a text that it had to cut off.
 */
const runtime = `
exports.env = { allowRemoteModels: true, localModelPath: '/models/', useFSCache: true }
exports.pipeline = async (task, model, { dtype }) => {
  const { existsSync } = require('node:fs')
  const file = exports.env.localModelPath + model + '/onnx/model_quantized.onnx'
  if (task !== 'feature-extraction' || dtype !== 'q8' || !existsSync(file)) throw new Error(file)
  if (exports.env.allowRemoteModels || exports.env.useFSCache) throw new Error('not offline')
  const encode = text => text.split(/\\W+/).filter(Boolean)
  const extract = async ([text], { pooling, normalize }) => {
    if (pooling !== 'cls' || !normalize || encode(text).length > 8) throw new Error('misused')
    const data = new Float32Array(26)
    for (const sign of text.toLowerCase()) if (/[a-z]/.test(sign)) data[sign.charCodeAt(0) - 97]++
    const norm = Math.hypot(...data) || 1
    return { dims: [1, 26], data: data.map(value => value / norm) }
  }
  return Object.assign(extract, { tokenizer: { encode, model_max_length: 1e30 } })
}`

const modelFiles = {
  'tiny-model/config.json': '{"max_position_embeddings":8}',
  'tiny-model/tokenizer.json': '{}',
  'tiny-model/onnx/model_quantized.onnx': '',
  'tiny-model/1_Pooling/config.json': '{"pooling_mode_cls_token":true}',
}
const runtimeFiles = {
  'node_modules/@huggingface/transformers/package.json': '{"main":"index.js"}',
  'node_modules/@huggingface/transformers/index.js': runtime,
}

/** The command on a folder of these files, until the test ends. */
function serve(t: Test, files: Record<string, string>) {
  const folder = t.testdir({})
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  const command = ['scripts/embedding-server.ts', join(folder, 'tiny-model'), '--port', '0']
  const child = spawn(process.execPath, command)
  t.teardown(() => child.kill('SIGKILL'))
  const { promise: base, resolve } = Promise.withResolvers<string>()
  let errors = ''
  child.stderr.on('data', (text: Buffer) => (errors += String(text)))
  child.stdout.on('data', (text: Buffer) => {
    const [address] = /http:\S+/.exec(String(text)) ?? []
    if (address) resolve(address)
  })
  const ended = once(child, 'close').then(([code]) => ({ code: code as number, errors }))
  return { base, ended }
}

t.test('a service embeds with the model of a folder, texts too long for it in parts', async t => {
  const server = serve(t, { ...modelFiles, ...runtimeFiles })
  const base = await Promise.race([server.base, server.ended])
  if (typeof base !== 'string') return t.fail(base.errors)
  const { backend, base: url } = await startService(t, {
    env: { PROVIDERS: 'onnx', ONNX_BASE_URL: base, EMBEDDINGS: 'onnx/tiny-model' },
    jobs: ['ingest'],
  })
  const client = await createKeyedClient(backend, url)
  const long = `The violin of my grandmother stands in the attic. ${'It is old and brown. '.repeat(9)}`
  for (const content of ['They like quiet zoos.', long])
    await client.post('/v1/memory/ingest?wait=true', { messages: [{ role: 'user', content }] })
  const found = await client.post('/v1/memory/search', { query: 'grandmother violin', limit: 1 })
  t.match(found.body.memories, [{ content: /violin/, similarity: Number }])
  t.match((await client.get('/v1/models')).body.models, ['onnx/tiny-model'])

  const post = (body: unknown, path = '/embeddings') =>
    fetch(base + path, { method: 'POST', body: JSON.stringify(body) })
  const model = 'tiny-model'
  const one = await post({ model, input: 'ab', encoding_format: 'float' })
  t.match(await one.json(), { data: [{ index: 0, embedding: [Math.fround(Math.SQRT1_2)] }] })
  for (const [status, body] of [
    [400, { model }],
    [400, { model, input: [] }],
    [400, { model, input: [[1, 2]] }],
    [400, null],
    [404, { model: 'another', input: 'x' }],
    [413, { model, input: ['x', long] }],
  ] as const)
    t.equal((await post(body)).status, status, JSON.stringify(body))
  t.equal((await post({ model, input: 'x' }, '/chat/completions')).status, 404)
})

t.test('exit code 1: what is missing is named', async t => {
  const { 'tiny-model/tokenizer.json': _, ...incomplete } = modelFiles
  t.match(await serve(t, { ...incomplete, ...runtimeFiles }).ended, {
    code: 1,
    errors: /has no tokenizer\.json/,
  })
  t.match(await serve(t, modelFiles).ended, {
    code: 1,
    errors: /@huggingface\/transformers is not installed\nRun "npm install/,
  })
})
