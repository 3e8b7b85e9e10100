import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { createTestClient, startJobWorkers } from '#test/support/start/api.ts'
import { waitUntilSettled } from '#test/support/checks/exchange-journal.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { readDocuments } from '#test/support/start/insert-memories.ts'
import { buildTeam } from '#test/support/start/team.ts'
import { storeAbandoned } from '#shared/vault/ingest/open-exchanges.ts'
import { countRows } from '#test/support/checks/observe.ts'

const { provider, backend, base } = await startProxyFixture(t)
await startJobWorkers(backend, 'ingest')
const { query } = backend.postgres

/** Turns are written with the exchange, in one transaction: none is under way when it is settled. */
const countTurns = (org: string) => countRows(backend, { table: 'org_turns', org })

t.test('what a member does not share is stored for them alone', async t => {
  const team = await buildTeam(backend)
  const key = await team.addMember('ada@example.com')
  const ada = createTestClient(base, key)
  const messages = [{ role: 'user', content: 'The launch is in May' }]
  const ingest = '/v1/memory/ingest?wait=true'
  const chat = '/v1/chat/completions'
  const asked = { model: 'gpt-4o-mini', messages }
  const provided = { 'x-provider-key': 'sk-0123456789abcdef' }
  const header = { 'x-memory-share': 'false' }
  t.equal((await ada.post(ingest, { messages, share: false })).status, 200)
  t.equal((await ada.post(ingest, { messages }, header)).status, 200)
  t.equal((await ada.post(ingest, { messages, share: true }, header)).status, 200)
  t.equal((await ada.post(chat, asked, { ...provided, ...header })).status, 200)
  const other = { ...asked, messages: [{ role: 'user', content: 'The office moves' }] }
  t.equal((await ada.post(chat, { ...other, memory_share: false }, provided)).status, 200)
  t.notMatch(provider.requests.at(-1)!.body.toString(), /memory_share/)
  await waitUntilSettled(backend)
  t.equal(await countTurns(team.org), 0)
  const texts = (await readDocuments(backend, key)).map(({ text }) => text)
  t.equal(texts.filter(text => text === 'The launch is in May').length, 4)
  t.ok(texts.includes('The office moves'))

  t.equal((await ada.post(ingest, { messages })).status, 200)
  t.equal(await countTurns(team.org), 1)
  const last = { ...asked, messages: [{ role: 'user', content: 'The kitchen is closed' }] }
  t.equal((await ada.post(chat, last, provided)).status, 200)
  await waitUntilSettled(backend)
  t.equal(await countTurns(team.org), 2)
  t.equal((await ada.post(ingest, { messages }, { 'x-memory-share': 'no' })).status, 400)
})

t.test('nor is it when the process dies before the answer', async t => {
  const team = await buildTeam(backend)
  const key = await team.addMember('ada@example.com')
  for (const share of ['true', 'false']) {
    const operation = mintId()
    await query(
      `insert into open_exchanges (operation, account, vault, key_hash, epoch, session_epoch, embeddings, model, user_turn,
                                   shares, renewed_at)
       select $1, k.account, k.vault, k.hash, v.epoch, 0, $3, 'openai/gpt-4o-mini', $4::jsonb, $5,
              now() - interval '1 hour'
       from memory_keys k join vaults v on v.id = k.vault where k.account = $2 and k.org_user is not null`,
      [
        operation,
        team.account,
        (await backend.embedders.get(undefined)).space,
        JSON.stringify([{ role: 'user', text: `shared: ${share}` }]),
        share,
      ],
    )
  }
  t.equal(await storeAbandoned(backend), 2)
  t.equal(await countTurns(team.org), 1)
  t.ok(key)
})
