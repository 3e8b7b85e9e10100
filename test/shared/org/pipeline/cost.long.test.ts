import t from 'tap'
import { createTestClient } from '#test/support/start/api.ts'
import { countPrompts } from '#test/support/checks/prompt-tokens.ts'
import { makeJobsDue } from '#test/support/checks/alter-jobs.ts'
import { countOpenTurns } from '#test/support/checks/observe-jobs.ts'
import {
  fortnightMembers,
  fortnightRoles,
  fortnightTags,
  teamFortnight,
  type TeamExchange,
} from '#test/support/samples/team-fortnight.ts'
import { startTeamService } from '#test/support/start/working-team.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

const { backend, base, model, newTeam } = await startTeamService(t, {
  // Exchanges of a talk wait until all of it is said.
  env: { ORG_GATHER_SECONDS: '600' },
})

/**
 * What these exchanges cost before: 455 calls, of which 432 are taken as the measure, and the input tokens of
 * prompts in which facts stood before tags, so that no provider had seen their beginning.
 */
const before = { calls: 432, uncached: 835_648 }

const samples = (label: string, kind: string): string[] =>
  Array.from(
    { length: 8 },
    (_, n) => `A sentence of the team, ${kind} ${n}, that has to do with ${label}`,
  )

async function teamOfEight() {
  const team = await newTeam(fortnightTags)
  for (const label of fortnightTags) {
    await backend.postgres.query(
      'update org_tags set examples = $3, negatives = $4 where org = $1 and label = $2',
      [team.org, label, samples(label, 'yes'), samples(label, 'no')],
    )
  }
  for (const [name, tags] of Object.entries(fortnightRoles)) await team.defineRole(name, tags)
  const keys = new Map<string, string>()
  for (const { name, roles } of fortnightMembers)
    keys.set(name, name === 'ada@example.com' ? team.key : await team.addMember(name, roles))
  return { ...team, keys }
}

const exchanges = teamFortnight()

/** Sends conversations of eight members at a time, each in its order. */
async function sendAll(keys: ReadonlyMap<string, string>): Promise<void> {
  const talks = [...Map.groupBy(exchanges, ({ session }) => session).values()]
  for (let from = 0; from < talks.length; from += 8) {
    await Promise.all(talks.slice(from, from + 8).map(talk => sendTalk(keys, talk)))
    await makeJobsDue(backend, 'org-extract')
    await waitUntil('the turns are done', async () => (await countOpenTurns(backend)) === 0)
  }
}

async function sendTalk(keys: ReadonlyMap<string, string>, talk: TeamExchange[]): Promise<void> {
  for (const { member, at, session, text } of talk) {
    const messages = [
      { role: 'user', content: text, timestamp: at },
      {
        role: 'assistant',
        content: 'I see. That is noted, and here is what I make of it.',
        timestamp: at,
      },
    ]
    const client = createTestClient(base, keys.get(member))
    await client.post('/v1/memory/ingest', { messages, session_id: session })
  }
}

t.test('two hundred exchanges of a team of eight with twenty tags', async t => {
  const { keys } = await teamOfEight()
  await sendAll(keys)
  const count = countPrompts(
    model.calls.map(({ model: name, body }) => ({
      model: name,
      text: body.messages.map(({ content }: { content: string }) => content).join('\n'),
    })),
  )
  const calls = Object.fromEntries(
    (['extract', 'tag', 'reconcile'] as const).map(pass => [pass, model.count(pass)]),
  )
  const seen = JSON.stringify({ ...calls, ...count })
  t.comment(seen)
  t.ok(count.calls <= before.calls / 2, seen)
  t.ok(count.uncached <= before.uncached / 10, seen)
})
