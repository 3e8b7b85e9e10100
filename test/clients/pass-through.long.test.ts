import t from 'tap'
import { toFile, type OpenAI } from 'openai'
import { respondJson } from '#test/support/doubles/model-provider/answers.ts'
import {
  createAnthropicClient,
  createOpenAiClient,
} from '#test/support/doubles/model-provider/clients.ts'
import { createRecordingFetch } from '#test/support/doubles/model-provider/recording-fetch.ts'
import {
  directTarget,
  startProxyFixture,
  proxiedTarget,
} from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { providerKey } from '#test/support/doubles/model-provider.ts'
import { findHeader, type RecordedRequest } from '#test/support/doubles/recording-server.ts'
import { readDocuments } from '#test/support/start/insert-memories.ts'

const world = await startProxyFixture(t)
const { provider, base, backend } = world

/** The parts of a form are the same; the line between them is drawn anew by every client. */
const withoutBoundary = ({ headers, body }: RecordedRequest): string => {
  const boundary = /boundary=(\S+)/.exec(findHeader(headers, 'content-type') ?? '')?.[1]
  return body.toString('latin1').replaceAll(boundary ?? '\0', 'BOUNDARY')
}

const sound = Buffer.from(Array.from({ length: 200_000 }, (_, index) => (index * 31) % 256))

const programs: Record<string, (client: OpenAI) => Promise<unknown>> = {
  '/v1/embeddings': client =>
    client.embeddings.create({ model: 'text-embedding-3-small', input: ['one', 'two'] }),
  '/v1/images/generations': async client =>
    // Without `created`, the second in which the provider answered.
    (await client.images.generate({ model: 'gpt-image-1', prompt: 'a fox, 東京' })).data,
  '/v1/audio/speech': async client => {
    const speech = await client.audio.speech.create({ model: 'tts-1', voice: 'alloy', input: 'Hi' })
    return [...new Uint8Array(await speech.arrayBuffer())]
  },
  '/v1/audio/transcriptions': async client =>
    client.audio.transcriptions.create({
      model: 'whisper-1',
      file: await toFile(sound, 'räksmörgås.mp3', { type: 'audio/mpeg' }),
      language: 'en',
    }),
}

for (const [path, program] of Object.entries(programs)) {
  t.test(`200: ${path} with the official client`, async t => {
    const direct = await program(createOpenAiClient(directTarget(world)))
    const asked = provider.requests.at(-1)!
    const key = await world.newKey()
    const ear = createRecordingFetch([base])
    const proxied = await program(createOpenAiClient(proxiedTarget(world, key, ear.fetch)))
    const seen = provider.requests.at(-1)!
    t.same(proxied, direct, 'the program gets the same')
    t.not(seen, asked)
    t.equal(seen.url, asked.url)
    t.equal(withoutBoundary(seen), withoutBoundary(asked), 'the provider is asked the same')
    t.equal(findHeader(seen.headers, 'authorization'), `Bearer ${providerKey('openai')}`)
    t.equal(ear.recorded[0]!.status, 200)
    t.ok(
      Buffer.concat(ear.recorded[0]!.chunks).equals(seen.response.body),
      'the answer is the same',
    )
    t.same(await readDocuments(backend, key), [], 'nothing is remembered')
  })
}

t.test('200: the list of models is the catalogue, whichever official client asks', async t => {
  const key = await world.newKey()
  const catalogue = {
    providers: [{ provider: String, models: Array }],
    models: Array,
    default: String,
    catalog_updated: String,
  }
  const openai = createOpenAiClient(proxiedTarget(world, key))
  t.match(await openai.get('/models'), catalogue)
  t.match(await (await openai.models.list().asResponse()).json(), catalogue)
  const { models: names } = await openai.get<{ models: string[] }>('/models')
  t.ok(names.length > 2)
  const listed = await Array.fromAsync(openai.models.list())
  t.same(
    listed,
    names.map(id => ({ id, object: 'model', created: 0, owned_by: id.split('/')[0] })),
  )
  const anthropic = createAnthropicClient(proxiedTarget(world, key))
  t.match(await anthropic.get('/v1/models'), catalogue)
  const ids = (await Array.fromAsync(anthropic.models.list())).map(({ id }) => id)
  t.same(ids, names)
})

const ask = [{ role: 'user' as const, content: 'Hi' }]

t.test('200: the rest of their APIs, as the official clients call it', async t => {
  const key = await world.newKey()
  const openai = createOpenAiClient(proxiedTarget(world, key))
  const anthropic = createAnthropicClient(proxiedTarget(world, key))
  const calls: Record<string, () => Promise<unknown>> = {
    'GET /openai/v1/models/gpt-4o-mini': () => openai.models.retrieve('gpt-4o-mini'),
    'GET /openai/v1/responses/resp_1': () => openai.responses.retrieve('resp_1'),
    'POST /openai/v1/responses/resp_1/cancel': () => openai.responses.cancel('resp_1'),
    'GET /openai/v1/responses/resp_1/input_items': () => openai.responses.inputItems.list('resp_1'),
    'DELETE /openai/v1/responses/resp_1': () => openai.responses.delete('resp_1'),
    'POST /openai/v1/moderations': () => openai.moderations.create({ input: 'Hi' }),
    'POST /openai/v1/completions': () =>
      openai.completions.create({ model: 'openai/gpt-3.5-turbo-instruct', prompt: 'Hi' }),
    'POST /openai/v1/files': async () =>
      openai.files.create({ file: await toFile(sound, 'a.jsonl'), purpose: 'batch' }),
    'GET /openai/v1/files/file-1/content': () => openai.files.content('file-1'),
    'POST /openai/v1/images/edits': async () =>
      openai.images.edit({ image: await toFile(sound, 'a.png'), prompt: 'x' }),
    'POST /openai/v1/audio/translations': async () =>
      openai.audio.translations.create({ model: 'whisper-1', file: await toFile(sound, 'a.mp3') }),
    'POST /openai/v1/batches': () =>
      openai.batches.create({
        input_file_id: 'file-1',
        endpoint: '/v1/responses',
        completion_window: '24h',
      }),
    'POST /anthropic/v1/messages/count_tokens': () =>
      anthropic.messages.countTokens({ model: 'claude-sonnet-5', messages: ask }),
    'GET /anthropic/v1/messages/batches/msgbatch_1': () =>
      anthropic.messages.batches.retrieve('msgbatch_1'),
    'GET /anthropic/v1/models/claude-sonnet-5': () => anthropic.models.retrieve('claude-sonnet-5'),
    'GET /anthropic/v1/files/file_1': () => anthropic.beta.files.retrieveMetadata('file_1'),
  }
  for (const [request, call] of Object.entries(calls)) {
    provider.respondNext(respondJson({ id: 'x', data: [], input_tokens: 7 }))
    await call()
    const seen = provider.requests.at(-1)!
    t.equal(`${seen.method} ${seen.url}`, request)
  }
  t.same(await readDocuments(backend, key), [], 'nothing is remembered')
})
