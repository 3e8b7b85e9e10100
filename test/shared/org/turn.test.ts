import t from 'tap'
import { mintId } from '#shared/ids.ts'
import { hashOfKey } from '#shared/key/key.ts'
import { acceptExchange } from '#shared/memory/ingest.ts'
import { saidIn } from '#shared/org/turn.ts'
import { buildKey } from '#test/support/api.ts'
import { testBackend } from '#test/support/backend.ts'
import { buildTeam } from '#test/support/team.ts'

const backend = await testBackend(t)
const { query } = backend.postgres

const said = (...messages: object[]) =>
  saidIn({}, { session: null, saidAt: 0, messages: messages as { role: string }[] })

t.test(
  'what is looked through is what is stored, and only with something the member said',
  async t => {
    t.equal(said({ role: 'assistant', content: 'Hello' }), undefined)
    t.equal(said({ role: 'user', content: 'no', memory: false }), undefined)
    t.equal(saidIn({ member: null }, { session: null, saidAt: 0, messages: [] }), undefined)
    t.match(
      said(
        { role: 'system', content: 'You are kind' },
        { role: 'user', content: [{ type: 'text', text: 'look' }], name: 'Ada' },
        { role: 'model', content: 'I see' },
      ),
      {
        messages: [
          { role: 'user', text: 'look', speaker: 'Ada' },
          { role: 'assistant', text: 'I see' },
        ],
      },
    )
  },
)

t.test('a long message keeps both ends, a long exchange what was said last', async t => {
  const long = `begin 💸${'x'.repeat(30_000)}💸 end`
  const text = said({ role: 'user', content: long })!.messages[0]!.text
  t.match(text, /^begin 💸x+\n\[…\]\nx+💸 end$/u)
  t.ok(text.length < 12_100 && text.isWellFormed())

  const messages = Array.from({ length: 100 }, (_, n) => ({
    role: 'user',
    content: `${n} ${'y'.repeat(2_000)}`,
  }))
  const kept = said(...messages)!.messages
  t.match(kept.at(-1)!.text, /^99 /)
  t.ok(kept.length > 40 && kept.length < 50, `${kept.length} messages`)
})

t.test(
  'an exchange that another process began is looked through if its key is a member’s',
  async t => {
    const team = await buildTeam(backend)
    const keys = [await team.member('ann'), await buildKey(backend)]
    const turns: unknown[] = []
    for (const key of keys) {
      const keyHash = hashOfKey(backend.config.keyPepper, key)
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
  },
)
