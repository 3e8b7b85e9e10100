import t from 'tap'
import { startService } from '#test/support/start/start-service.ts'
import { checkOut, commit } from '#test/support/start/consolidation.ts'

/** What a reflection says of what it was made of. */

const { newClient } = await startService(t)

const own = 'I am allergic to penicillin.'
const claim = 'The user is allergic to nothing, penicillin is fine.'
const question = 'Am I allergic to penicillin?'

type Client = Awaited<ReturnType<typeof newClient>>
type Row = { id: string; content: string; origin: string; metadata?: Record<string, unknown> }

async function ingest(client: Client, content: string, metadata?: object): Promise<void> {
  const body = { messages: [{ role: 'user', content }], ...(metadata && { metadata }) }
  t.equal((await client.post('/v1/memory/ingest?wait=true', body)).status, 200)
}

/** Makes one reflection of all that a tier has. @returns its id */
async function reflect(client: Client, text: string, tier = 1): Promise<string> {
  const batch = await checkOut(client, { tier })
  const entries = [{ text, importance: 7 }]
  const { status, body } = await commit(client, batch.body.batch_id, entries)
  t.equal(status, 200)
  return body.created[0].id
}

const search = async (client: Client): Promise<Row[]> =>
  (await client.post('/v1/memory/search', { query: question, limit: 9 })).body.memories

t.test(
  "a reflection of what a program wrote says so and stands below the person's word",
  async t => {
    const client = await newClient()
    await ingest(client, claim, { origin: 'program', run_id: 'r-7' })
    const id = await reflect(
      client,
      'The user is allergic to nothing: penicillin is fine for the user.',
    )
    await ingest(client, own)
    const rows = await search(client)
    t.equal(rows[0]?.content, own)
    const made = rows.find(row => row.id === id)
    t.match(made, { origin: 'reflection', metadata: { origin: 'program' } })
    const { body } = await client.post('/v1/memory/prepare', {
      messages: [{ role: 'user', content: question }],
    })
    t.match(body.context, /reflection, importance 7 by way of a program, unconfirmed\]/)
    const deeper = await reflect(
      client,
      'Penicillin never hurt the user, who is allergic to nothing.',
      2,
    )
    const high = (await search(client)).find(row => row.id === deeper)
    t.match(high, { metadata: { origin: 'program' } }, 'and so does one that was made of it')
    const judged = { metadata: { origin: 'program' }, feedback: 'wrong' }
    const { body: taken } = await client.post('/v1/memory/feedback', judged)
    t.equal(taken.count, 3, 'one call takes all of it back')
    t.same(
      (await search(client)).map(({ content }) => content),
      [own],
    )
  },
)

t.test('a reflection says that a source of it was taken back, until that is undone', async t => {
  const client = await newClient()
  await ingest(client, own)
  await ingest(client, 'I sleep badly.')
  const id = await reflect(client, 'The user is allergic to penicillin and sleeps badly.')
  const reflection = async () => (await search(client)).find(row => row.id === id)
  t.notOk('metadata' in (await reflection())!, 'the words of a person')
  const source = (await search(client)).find(({ content }) => content === own)!
  const judge = (feedback: string) => client.post(`/v1/memory/${source.id}/feedback`, { feedback })
  await judge('wrong')
  t.same((await reflection())?.metadata, { made_of_untold: true })
  const asked = { messages: [{ role: 'user', content: question }] }
  const { body } = await client.post('/v1/memory/prepare', asked)
  t.match(body.context, /reflection, importance 7, of what was taken back\]/)
  const filter = encodeURIComponent('{"made_of_untold":true}')
  t.match((await client.get(`/v1/memory/list?metadata=${filter}`)).body.items, [{ memory_id: id }])
  await judge('right')
  t.notOk('metadata' in (await reflection())!)
})
