import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { applyTag } from '#shared/org/pipeline/apply-tag.ts'
import { endOrphanedTagRuns, insertTagRun } from '#shared/org/pipeline/tag-runs.postgres.ts'
import { cancelAsOperator } from '#shared/vault/delete/cancel.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { seedTeamMemories } from '#test/support/start/team.ts'
import { startTeamService, type WorkingTeam } from '#test/support/start/working-team.ts'
import { makeJobsDue } from '#test/support/checks/alter-jobs.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

const { base, backend, model, newTeam } = await startTeamService(t)

t.beforeEach(() => model.failAll(null))

const tagOf = async (team: WorkingTeam, label: string): Promise<string> => {
  const { tags } = (await team.admin.get(`/v1/orgs/${team.org}/tags`)).body
  const { tag_id } = tags.find((tag: { label: string }) => tag.label === label)
  return `/v1/orgs/${team.org}/tags/${tag_id}/apply`
}

const whenDone = async (team: WorkingTeam, path: string) => {
  await waitUntil('the run is done', async () => (await team.admin.get(path)).body.state === 'done')
  return (await team.admin.get(path)).body
}

const tagsOf = async (team: WorkingTeam): Promise<Record<string, string[]>> => {
  const { items } = (await team.admin.get(`/v1/orgs/${team.org}/memories?limit=200`)).body
  return Object.fromEntries(
    items.map(({ text, tags }: { text: string; tags: string[] }) => [text, tags]),
  )
}

t.test('a new tag closes what it is about, and doubtful ones are reviewed', async t => {
  const acme = await newTeam()
  const zed = createTestClient(base, await acme.addMember('zed@example.com'))
  const seen = async () =>
    (await zed.post('/v1/memory/search', { query: 'lawsuit with Initech', limit: 9 })).body.memories
      .map(({ content }: { content: string }) => content)
      .toSorted()
  const open = ['Case: settled ?legal', 'Lawsuit: with Initech #legal', 'Office: in Graz']
  await seedTeamMemories(
    backend,
    acme,
    open.map(text => ({ text })),
  )
  await acme.admin.post(`/v1/orgs/${acme.org}/tags`, {
    label: 'legal',
    question: 'Is it about a lawsuit?',
    examples: [],
    negatives: [],
  })
  const path = await tagOf(acme, 'legal')
  t.equal((await acme.admin.get(path)).status, 404, 'it was never asked')
  const before = model.count('tag')
  t.match(await acme.admin.post(path, { dry_run: true }), {
    status: 200,
    body: { dry_run: true, memories: 3, calls: 1, input_tokens: Number },
  })
  t.equal(model.count('tag'), before, 'a dry run asks no model')
  t.ok((await seen()).includes('Lawsuit: with Initech #legal'))

  const sent = { 'idempotency-key': 'apply' }
  const started = await acme.admin.post(path, {}, sent)
  t.match(started, { status: 202, body: { memories: 3 } })
  t.equal((await acme.admin.post(path, {}, sent)).body.run_id, started.body.run_id)
  t.match(await whenDone(acme, path), { examined: 3, tagged: 2, doubtful: 1, last_error: null })
  t.equal(model.count('tag'), before + 1, 'in one call')
  t.same(await tagsOf(acme), {
    'Case: settled ?legal': ['legal'],
    'Lawsuit: with Initech #legal': ['legal'],
    'Office: in Graz': [],
  })
  t.notMatch(await seen(), [/Lawsuit/])
  t.notOk((await seen()).includes('Lawsuit: with Initech #legal'))
  const { review } = (await acme.admin.get(`/v1/orgs/${acme.org}/memories/review`)).body
  t.match(review, [{ text: 'Case: settled ?legal', tags: ['legal'] }])
  t.equal(review.length, 1)

  const { body: audit } = await acme.admin.get(`/v1/orgs/${acme.org}/audit?action=retag`)
  t.match(audit.events, [{ actor: acme.email }, { actor: acme.email }])
  const usage = (await acme.admin.get(`/v1/orgs/${acme.org}/usage`)).body
  t.match(usage.by_pass, { tag: { calls: 1 } }, 'and its cost is shown')
  const events = (await acme.admin.get('/v1/account/events')).body.items
  t.match(events[0], { action: 'tag.applied', actor: acme.email, after: { memories: 3 } })

  t.match((await acme.admin.post(path, { dry_run: true })).body, { memories: 1 })
})

t.test('it keeps to the pipeline: paused, a provider that is down, pages', async t => {
  const acme = await newTeam(['legal'])
  const texts = Array.from({ length: 45 }, (_, n) => `Thing ${n}: there${n % 9 ? '' : ' #legal'}`)
  await seedTeamMemories(
    backend,
    acme,
    texts.map((text, n) => ({ text, acquiredAt: n })),
  )
  const path = await tagOf(acme, 'legal')
  t.match((await acme.admin.post(path, { dry_run: true })).body, { memories: 45, calls: 3 })
  model.failAll(503)
  t.match(await acme.admin.post(path, {}), { status: 202 })
  await waitUntil(
    'it says why it waits',
    async () => (await acme.admin.get(path)).body.last_error !== null,
  )
  t.match(await acme.admin.post(path, {}), { status: 409 })
  t.match((await acme.admin.get(path)).body, { state: 'running', examined: 0 })
  model.failAll(null)
  await waitUntil('the run is done', async () => {
    await makeJobsDue(backend, 'org-tag-run')
    return (await acme.admin.get(path)).body.state === 'done'
  })
  t.match(await whenDone(acme, path), { examined: 45, tagged: 5, doubtful: 0 })
  const tagged = Object.entries(await tagsOf(acme)).filter(([, tags]) => tags.includes('legal'))
  t.equal(tagged.length, 5)
})

t.test('a run whose job is removed ends, and the tag can be asked again', async t => {
  // No worker takes its job, and no sweep ends it before the test looks.
  const still = await startTeamService(t, { working: false })
  const { query } = still.backend.postgres
  const acme = await still.newTeam(['legal'])
  await seedTeamMemories(still.backend, acme, [{ text: 'Lawsuit: with Initech #legal' }])
  const path = await tagOf(acme, 'legal')
  const { run_id: run } = (await acme.admin.post(path, {})).body
  const age = `update org_tag_runs set created_at = now() - interval '6 minutes' where id = $1`
  await query(age, [run])
  t.equal(await endOrphanedTagRuns(query), 0, 'it has its job')
  t.match(await cancelAsOperator(still.backend, run), { removed: 1 })
  t.equal((await acme.admin.post(path, {})).status, 409)
  t.equal(await endOrphanedTagRuns(query), 1)
  t.match((await acme.admin.get(path)).body, { run_id: run, state: 'done', examined: 0 })
  t.equal((await acme.admin.post(path, {})).status, 202)
  t.equal(await endOrphanedTagRuns(query), 0)
})

/** Memories, of which one is the 8th newest, and a started run of the tag `legal`. */
async function startedRun(count: number, eighth: string) {
  const acme = await newTeam(['legal'])
  const texts = Array.from({ length: count }, (_, n) => (n === 7 ? eighth : `Thing ${n}: there`))
  await seedTeamMemories(
    backend,
    acme,
    texts.map((text, n) => ({ text, acquiredAt: count - n })),
  )
  const path = await tagOf(acme, 'legal')
  t.equal((await acme.admin.post(path, {})).status, 202)
  return { acme, path }
}

t.test(
  'what the provider refuses, or answers unusably, is doubtful, and the run goes on',
  async t => {
    for (const answer of [
      { status: 400 },
      { status: 413 },
      { status: 422 },
      'I cannot.',
    ] as const) {
      const refusals = Array.from(
        { length: 40 },
        () =>
          ({ userPrompt }: (typeof model.calls)[number]) =>
            userPrompt.facts.some(({ text }: { text: string }) => text.startsWith('Bad'))
              ? answer
              : null,
      )
      model.scriptAnswers('tag', ...refusals)
      const { acme, path } = await startedRun(25, 'Bad: words')
      const run = await whenDone(acme, path)
      t.match(run, { examined: 25, tagged: 1, doubtful: 1, last_error: null })
      t.same((await tagsOf(acme))['Bad: words'], ['legal'])
      const { review } = (await acme.admin.get(`/v1/orgs/${acme.org}/memories/review`)).body
      t.match(review, [{ text: 'Bad: words' }])
    }
    model.scriptAnswers('tag')
  },
)

t.test('a provider that refuses everything tags nothing', async t => {
  model.failAll(400)
  const { acme, path } = await startedRun(3, 'none')
  await waitUntil('it says why it waits', async () =>
    /400/.test((await acme.admin.get(path)).body.last_error),
  )
  t.match((await acme.admin.get(path)).body, { state: 'running', examined: 0, tagged: 0 })
  model.failAll(null)
  await waitUntil('the run is done', async () => {
    await makeJobsDue(backend, 'org-tag-run')
    return (await acme.admin.get(path)).body.state === 'done'
  })
  t.match(await whenDone(acme, path), { examined: 3, tagged: 0 })
})

t.test('long memories are asked about in calls of few', async t => {
  const acme = await newTeam(['legal'])
  const texts = ['a', 'b', 'c', 'd', 'e'].map(name => `${name}: ${'word '.repeat(3_500)}`)
  await seedTeamMemories(
    backend,
    acme,
    texts.map((text, n) => ({ text, acquiredAt: n })),
  )
  const path = await tagOf(acme, 'legal')
  t.match((await acme.admin.post(path, { dry_run: true })).body, { memories: 5, calls: 3 })
  const before = model.count('tag')
  await acme.admin.post(path, {})
  t.match(await whenDone(acme, path), { examined: 5 })
  t.equal(model.count('tag'), before + 3)
})

t.test('a long run is more than one job', async t => {
  const acme = await newTeam(['legal'])
  const texts = Array.from({ length: 45 }, (_, n) => `Thing ${n}: there`)
  await seedTeamMemories(
    backend,
    acme,
    texts.map(text => ({ text })),
  )
  const { tags } = (await acme.admin.get(`/v1/orgs/${acme.org}/tags`)).body
  const run = mintId()
  const row = { id: run, org: acme.org, tag: tags[0].tag_id, createdBy: acme.email, memories: 45 }
  await backend.postgres.transaction(tx => insertTagRun(tx, row))
  let minutes = 0
  const slow = { ...backend, now: () => Date.now() + 5 * 60_000 * minutes++ }
  const work = () => applyTag(slow, { org: acme.org, run }, AbortSignal.timeout(60_000))
  const path = await tagOf(acme, 'legal')
  for (const examined of [20, 40, 45]) {
    t.same(await work(), { snoozeSeconds: 1 })
    t.match((await acme.admin.get(path)).body, { examined, state: 'running' })
  }
  t.equal(await work(), undefined)
  t.match((await acme.admin.get(path)).body, { state: 'done', examined: 45 })
})
