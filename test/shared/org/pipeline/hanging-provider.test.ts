import t from 'tap'
import { findTurn } from '#shared/org/base/org-turns.postgres.ts'
import { makeJobsDue } from '#test/support/checks/alter-jobs.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { startTeamService, type WorkingTeam } from '#test/support/start/working-team.ts'

/** A provider that does not answer one organization, in each pass, and one worker process for all. */

const { backend, model, newTeam, finished } = await startTeamService(t)
const { query } = backend.postgres

const passes = ['extract', 'tag', 'reconcile'] as const
const hangingTurns = 8
/** Places of one organization in a worker process, of twelve. */
const placesMax = 4

/** Calls whose material has this word get no answer before `release`. */
function hangCalls(pass: (typeof passes)[number], word: string) {
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  let hanging = 0
  const answer = async ({ userPrompt }: { userPrompt: unknown }) => {
    if (JSON.stringify(userPrompt).includes(word)) {
      hanging++
      await released
    }
    return null as unknown as string
  }
  model.scriptAnswers(pass, ...Array.from({ length: 500 }, () => answer))
  t.teardown(release)
  return { release, hanging: () => hanging }
}

/** Turns of as many members, so that each is asked about by itself. */
async function sayFromMembers(team: WorkingTeam, texts: readonly string[]): Promise<string[]> {
  const keys = await Promise.all(
    texts.map((_, n) => team.addMember(`member-${n}@example.com`, ['Everything'])),
  )
  return Promise.all(texts.map((text, n) => team.say(text, { as: keys[n]! })))
}

for (const pass of passes) {
  t.test(`${pass}: one organization hangs, the turns of another end`, async t => {
    const word = `stuck-${pass}`
    const stuck = await newTeam(['launch'])
    const other = await newTeam(['launch'])
    for (const team of [stuck, other]) await team.share('Fact: topic: is new')
    const { release, hanging } = hangCalls(pass, word)
    const turns = await sayFromMembers(
      stuck,
      Array.from({ length: hangingTurns }, (_, n) => `Fact: topic: is ${word} ${n}`),
    )
    await waitUntil('calls hang', () => hanging() >= placesMax)

    for (let n = 1; n <= 3; n++) await other.share(`Fact: topic: is at ${n}`)
    const texts = (await other.memories()).map(({ text }) => text)
    t.same(texts, ['topic: is at 3'])
    t.equal(hanging(), placesMax, 'it holds no more places than it may')
    const { rows } = await query(
      'select from org_turns where id = any($1) and finished_at is null',
      [turns],
    )
    t.equal(rows.length, hangingTurns, 'they hang to the end')

    release()
    for (const turn of turns) await finished(turn)
    t.same(await query(ungroupedJobs).then(({ rows }) => rows), [], 'each job has its group')
  })
}

t.test('a hanging provider of many organizations, in their probes, stops no other', async t => {
  const word = 'stuck-probe'
  const { release, hanging } = hangCalls('extract', word)
  const stuck = await Promise.all(Array.from({ length: 14 }, () => newTeam()))
  await query(
    `insert into org_pipelines (org, fault, fault_since, probes, probe_at)
     select id, 'it did not answer', now(), 1, now() from unnest($1::uuid[]) as o(id)`,
    [stuck.map(({ org }) => org)],
  )
  const turns = await Promise.all(stuck.map(team => team.say(`Fact: topic: is ${word}`)))
  await waitUntil('probes hang', () => hanging() >= placesMax)
  const other = await newTeam()
  for (let n = 1; n <= 3; n++) await other.share(`Fact: topic: is at ${n}`)
  t.equal(hanging(), placesMax, 'the probes of a process are bounded')
  release()
  await waitUntil('their turns end, some at a time', async () => {
    await makeJobsDue(backend, 'org-extract')
    const states = await Promise.all(turns.map(turn => findTurn(query, turn)))
    return states.every(state => state?.finished)
  })
})

const ungroupedJobs = `
  select name, id from pgboss.job
  where name in ('org-tag', 'org-reconcile') and group_id is distinct from data->>'org'`
