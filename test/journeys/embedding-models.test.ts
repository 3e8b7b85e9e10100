import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import t from 'tap'
import { shiftEmbedder, shifts } from '#scripts/lab/bench/harm/shifted-embedder.ts'
import { localEmbedder } from '#shared/models/local-embedder.ts'
import { listen } from '#test/support/start/listen.ts'
import { startService } from '#test/support/start/start-service.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

/** Whatever the cosines of the embedding model: what is related is found, ranked and grafted, and nothing else. */

/** The server does not know queries from texts. */
const base = { ...localEmbedder(), embedQueries: localEmbedder().embedTexts }
const models = await Promise.all(shifts.map(shift => shiftEmbedder(base, shift)))

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let body = ''
  for await (const chunk of request) body += String(chunk)
  const { model, input } = JSON.parse(body) as { model: string; input: string[] }
  const vectors = await models[Number(model.slice(-1))]!.embedTexts(input)
  const data = vectors.map((vector, index) => ({ index, embedding: [...vector] }))
  response.setHeader('content-type', 'application/json').end(JSON.stringify({ data }))
}
const server = createServer((request, response) => {
  answer(request, response).catch(() => response.destroy())
})
const { backend, newClient } = await startService(t, {
  env: { VLLM_BASE_URL: await listen(t, server) },
})

const related = [
  'My allotment has three plum trees and a pear tree.',
  'The plum tree in the allotment was planted by my grandmother.',
]
const others = [
  'The quarterly report is due on Friday.',
  'I fell asleep on the sofa during the quiz show.',
  'My train to Leipzig was late again.',
  'We should repaint the hallway before the guests arrive.',
  'The neighbour practises the trumpet at the strangest hours.',
  'Our printer only works when the window is open.',
  'I have ordered new tyres for the bicycle.',
  'The dentist moved the check-up to next month.',
]

for (const [number, shift] of shifts.entries()) {
  t.test(`unrelated texts at ${shift.unrelated}, ${shift.dimension} dimensions`, async t => {
    const embeddings = `vllm/model-${number}`
    const client = await newClient()
    const embedder = await backend.embedders.get(embeddings)
    await waitUntil('measured', () => embedder.calibration.certain !== undefined)
    const measured = models[number]!.calibration
    t.ok(Math.abs(embedder.calibration.unrelated - measured.unrelated) < 1e-3)
    for (const content of [...others, ...related]) {
      const message = { role: 'user', content }
      t.match(
        await client.post('/v1/memory/ingest?wait=true', { messages: [message], embeddings }),
        { status: 200 },
      )
    }

    const query = 'Which trees grow in my allotment?'
    const { status, body: found } = await client.post('/v1/memory/search', {
      query,
      embeddings,
      limit: 10,
    })
    t.equal(status, 200, JSON.stringify(found).slice(0, 300))
    const scores = found.memories.map((row: { score: number }) => row.score)
    t.same(
      scores,
      scores.toSorted((one: number, other: number) => other - one),
      'rows in order',
    )
    const texts = found.memories.map((row: { content: string }) => row.content)
    t.same(texts.slice(0, 2).sort(), related.toSorted())
    t.ok(scores[1] >= 0.5 && (scores[2] ?? 0) < 0.5, `${scores.slice(0, 3)}`)

    const prepare = async (content: string) => {
      const messages = [{ role: 'user', content }]
      return (await client.post('/v1/memory/prepare', { messages, embeddings })).body.context
    }
    t.match(await prepare(query), /plum/)
    t.equal(await prepare('How do I cook rice?'), null)
    t.equal(await prepare('What is the name of my horse?'), null)

    const destination = await newClient()
    const { body: grafted } = await client.post('/v1/memory/graft', {
      destination_key: destination.key,
      queries: [query],
      embeddings,
      dry_run: true,
    })
    t.equal(grafted.count, 2)
  })
}
