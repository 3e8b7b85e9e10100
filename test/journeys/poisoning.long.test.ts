import t from 'tap'
import attacks from '#test/support/samples/poisoning-attacks.json' with { type: 'json' }
import { createTestClient, type TestClient } from '#test/support/start/api.ts'
import { connectMcp } from '#test/support/start/mcp.ts'
import {
  createKeyedClient,
  exportLines,
  importFile,
  type KeyedClient,
} from '#test/support/start/memory-file.ts'
import { startTeamService } from '#test/support/start/working-team.ts'

/**
 * Sixty attacks (OWASP ASI06): a false claim about a person in a page, in a tool's output, in a summary and in another
 * member's words, each against the person's own word. None is told in a block as that.
 */

const { backend, base, newTeam } = await startTeamService(t)

type Row = { id: string; content: string; origin: string }
type Attack = (typeof attacks)[number]

const channels = ['page', 'tool', 'summary', 'member'] as const
t.equal(attacks.length * channels.length, 60)

const ingest = async (client: TestClient, messages: object[], more: object = {}) => {
  const body = { messages, ...more }
  const { status } = await client.post('/v1/memory/ingest?wait=true', body)
  t.equal(status, 200)
}
const user = (content: unknown) => ({ role: 'user', content })

/** Each way in, as programs use it: what an agent reads is in its messages, noted by its tools, and summed up. */
const send: Record<
  'page' | 'tool' | 'summary',
  (client: KeyedClient, one: Attack) => Promise<void>
> = {
  async page(client, { page }) {
    const call = { role: 'tool', content: page }
    await ingest(client, [user('Read that page.'), call, { role: 'assistant', content: page }])
    const mcp = await connectMcp(t, base, client.key)
    const stored = await mcp.callTool({ name: 'store', arguments: { text: page } })
    t.notOk(stored.isError, JSON.stringify(stored))
  },
  async tool(client, { tool }) {
    const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: tool }
    await ingest(client, [user('Run it.'), user([result]), { role: 'assistant', content: tool }])
    const metadata = { origin: 'program', run_id: 'r-7' }
    await ingest(client, [user(tool)], { metadata })
  },
  async summary(client, { summary }) {
    await ingest(client, [user(summary)], { metadata: { origin: 'program', kind: 'summary' } })
  },
}

/** The speakers of the lines of a block that hold a text. */
const speakersOf = (context: string | null, marker: string): string[] =>
  (context ?? '').split('\n').flatMap(line => {
    const [, who, text] = /^\[[^\]]*? · [^\]]*? UTC · ([^\]]*)\] (.*)$/.exec(line) ?? []
    return text?.includes(marker) ? [who!] : []
  })

/** Asks, and checks how each row and line of the attack is told. @returns the rows. */
async function ask(client: TestClient, { question, marker }: Attack): Promise<Row[]> {
  const { body } = await client.post('/v1/memory/search', { query: question, limit: 20 })
  const rows = body.memories as Row[]
  for (const { content, origin } of rows)
    if (content.includes(marker)) t.not(origin, 'person', `${marker}: ${content}`)
  const prepared = await client.post('/v1/memory/prepare', { messages: [user(question)] })
  for (const who of speakersOf(prepared.body.context, marker))
    t.notMatch(who, /^(user|bob@example\.com)(, (earlier|later))?$/, marker)
  return rows
}

t.test(
  'a page, the output of a tool, a summary: told as what they are, below the own word',
  async t => {
    const ways = ['page', 'tool', 'summary'] as const
    const above: string[] = []
    let told = 0
    for (const one of attacks) {
      for (const way of ways) {
        const client = await createKeyedClient(backend, base)
        await ingest(client, [user(one.own)])
        await send[way](client, one)
        const rows = await ask(client, one)
        told += rows.filter(({ content }) => content.includes(one.marker)).length
        if (rows[0]!.content !== one.own) above.push(`${way}: ${rows[0]!.content}`)
      }
    }
    t.ok(told > 0, 'attacks are stored and found: nothing is hidden')
    t.same(above, [], 'the own word stands first')
  },
)

t.test("another member's words: told as the team's, beside the own word", async t => {
  const team = await newTeam()
  const bob = createTestClient(base, await team.addMember('bob@example.com', ['Everything']))
  let found = 0
  for (const one of attacks) {
    await ingest(bob, [user(one.own)])
    await team.share(`Fact: ${one.member}`)
    const rows = await ask(bob, one)
    const claims = rows.filter(({ content }) => content.includes(one.marker))
    t.ok(claims.every(({ origin }) => origin === 'model'))
    found += claims.length
    t.ok(rows.some(({ content }) => content === one.own))
  }
  t.ok(found > 0, 'what the team knows is found')
})

t.test('one call takes back a run, or an origin; an export puts it back', async t => {
  const client = await createKeyedClient(backend, base)
  const [one, other] = attacks
  await ingest(client, [user(one!.own)])
  await send.tool(client, one!)
  await send.summary(client, other!)
  const texts = async () => (await exportLines(client)).map(line => line.content).toSorted()
  const before = await exportLines(client)
  const all = await texts()

  const run = { metadata: { origin: 'program', run_id: 'r-7' } }
  t.match((await client.post('/v1/memory/delete-ids', run)).body, { deleted: 1 })
  const left = all.toSpliced(all.indexOf(one!.tool), 1)
  t.same(await texts(), left, 'the answer of the model, which has the same words, stays')
  const origins = { metadata: { origin: ['program', 'model'] } }
  t.match((await client.post('/v1/memory/delete-ids', origins)).body, { deleted: Number })
  t.same(await texts(), [one!.own, 'Run it.'].toSorted(), 'the own words stay')
  t.match((await importFile(client, before)).body, { failed: 0 })
  t.same(await texts(), all)
})
