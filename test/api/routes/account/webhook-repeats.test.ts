import t from 'tap'
import { buildKey, createTestClient, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'

const backend = await createTestBackend(t)
const { base } = await startTestApi(t, backend)
const { postgres } = backend
/** Ends each request right after the commit of its first transaction. */
const dying = await startTestApi(t, {
  ...backend,
  postgres: {
    ...postgres,
    async transaction(work) {
      await postgres.transaction(work)
      throw new Error('the process was killed')
    },
  },
})

const headers = { 'idempotency-key': 'once' }

async function newWebhook() {
  const key = await buildKey(backend)
  const client = createTestClient(base, key)
  const hook = { url: 'https://example.com/', events: ['key.revoked'] }
  const { id } = (await client.post('/v1/account/webhooks', hook)).body
  return {
    client,
    crashing: createTestClient(dying.base, key),
    id,
    at: `/v1/account/webhooks/${id}`,
  }
}

t.test('200: a renewal whose process was killed is repeated with its secret', async t => {
  const { client, crashing, id, at } = await newWebhook()
  t.equal((await crashing.post(`${at}/secret`, undefined, headers)).status, 500)
  const stored = () =>
    postgres.query('select secret, former_secret from webhooks where id = $1', [id])
  const { rows: renewed } = await stored()

  const repeated = await client.post(`${at}/secret`, undefined, headers)
  t.match(repeated, { status: 200, body: { id, secret: /^whsec_/ } })
  t.same((await stored()).rows, renewed, 'it is renewed once')
  t.same((await client.post(`${at}/secret`, undefined, headers)).body, repeated.body)
})

t.test('200: a deletion whose process was killed is answered again', async t => {
  const { client, crashing, id, at } = await newWebhook()
  t.equal((await crashing.send('DELETE', at, { headers })).status, 500)
  t.equal((await client.get(at)).status, 404)
  t.match(await client.send('DELETE', at, { headers }), {
    status: 200,
    body: { deleted: true, id },
  })
})
