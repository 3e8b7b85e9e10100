import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { hashKey } from '#shared/access/key.ts'
import { acceptExchange } from '#shared/vault/ingest/ingest.ts'
import { toExtractionInput } from '#shared/vault/ingest/turn-extraction.ts'
import { buildKey } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { buildTeam } from '#test/support/start/team.ts'

const backend = await createTestBackend(t)
const { query } = backend.postgres

const said = (...messages: object[]) =>
  toExtractionInput({}, { session: null, saidAt: 0, messages: messages as { role: string }[] })

t.test('what is looked through is what is stored, if the member said any of it', async t => {
  t.equal(said({ role: 'assistant', content: 'Hello' }), undefined)
  t.equal(said({ role: 'user', content: 'no', memory: false }), undefined)
  t.equal(
    toExtractionInput({ memberScope: null }, { session: null, saidAt: 0, messages: [] }),
    undefined,
  )
  t.match(
    said(
      { role: 'system', content: 'You are kind' },
      { role: 'user', content: [{ type: 'text', text: 'look' }], name: 'Ada' },
      { role: 'model', content: 'I see' },
    ),
    {
      parts: [
        {
          messages: [
            { role: 'user', text: 'look', speaker: 'Ada' },
            { role: 'assistant', text: 'I see' },
          ],
        },
      ],
    },
  )
})

t.test('a long message keeps both ends', async t => {
  const long = `begin 💸${'x'.repeat(30_000)}💸 end`
  const [part] = said({ role: 'user', content: long })!.parts
  const { text } = part!.messages[0]!
  t.match(text, /^begin 💸x+\n\[…\]\nx+💸 end$/u)
  t.ok(text.length < 12_100 && text.isWellFormed())
  t.equal(part!.leftOut, long.length - 12_000)
})

const exchange = (turns: number, length: number): object[] =>
  Array.from({ length: turns }, (_, n) => [
    { role: 'user', content: `${n} ${'y'.repeat(length)}` },
    { role: 'assistant', content: 'z'.repeat(length) },
  ]).flat()

t.test('a long exchange is looked through in parts, turn by turn', async t => {
  const messages = exchange(50, 5_000)
  const { parts } = said(...messages)!
  t.equal(parts.length, 6)
  t.same(
    parts.flatMap(part => part.messages.map(({ text }) => text)),
    messages.map(message => (message as { content: string }).content),
    'nothing is lost, doubled or moved',
  )
  t.ok(parts.every(part => part.messages[0]!.role === 'user' && part.leftOut === 0))
  t.ok(parts.every(part => JSON.stringify(part.messages).length < 100_000))

  const one = Array.from({ length: 100 }, () => ({ role: 'user', content: 'x'.repeat(2_000) }))
  t.equal(said(...one)!.parts.length, 3, 'a turn that is too long is cut between its messages')

  const { parts: newest } = said(...exchange(500, 5_000))!
  t.equal(newest.length, 20)
  t.match(newest.at(-1)!.messages.at(-2)!.text, /^499 /)
  const kept = newest.flatMap(part => part.messages).reduce((sum, { text }) => sum + text.length, 0)
  const all = exchange(500, 5_000).reduce(
    (sum, { content }: { content?: string }) => sum + content!.length,
    0,
  )
  t.equal(newest[0]!.leftOut, all - kept, 'what is left out is counted')
})

t.test('it was said when the member last said something', async t => {
  const at = (timestamp?: number, role = 'user') => ({
    role,
    content: 'x',
    ...(timestamp !== undefined && { timestamp }),
  })
  const saidAt = (...messages: object[]) => said(...messages)!.parts[0]!.saidAt
  t.equal(saidAt(at(-5), at(-3), at(-1, 'assistant')), -3)
  t.equal(saidAt(at(Date.UTC(9998, 11, 31))), 0, 'never after it was accepted')
  t.equal(saidAt(at(5), at()), 0, 'now, where it does not say when')
  const { parts } = said(...exchange(30, 5_000))!
  const times = parts.map(part => part.saidAt)
  t.same(times, [-3, -2, -1, 0], 'parts keep their order')
})

t.test('an exchange that another process began is looked through for a member’s key', async t => {
  const team = await buildTeam(backend)
  const keys = [await team.addMember('ann'), await buildKey(backend)]
  const turns: unknown[] = []
  for (const key of keys) {
    const keyHash = hashKey(backend.config.keyPepper, key)
    const row = (await backend.findKey(keyHash))!
    const operation = mintId()
    const owner = { account: row.account, keyHash, scope: { vault: row.vault } }
    await acceptExchange(backend, owner, {
      operation,
      session: null,
      messages: [{ role: 'user', content: 'The floor is 3' }],
      model: null,
      embeddings: undefined,
      awaited: false,
    })
    const { rows } = await query(
      `select t.author, j.data ? 'keyHash' as tells
     from org_turns t join pgboss.job j on j.id = t.id and j.name = 'org-extract'
     where t.id = $1`,
      [operation],
    )
    turns.push(rows)
  }
  t.same(turns, [[{ author: 'ann', tells: false }], []])
})
