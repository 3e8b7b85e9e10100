import t from 'tap'
import type { RelabelJob } from '#shared/domain/job-payloads.ts'
import { relabelMemories } from '#shared/org/memories/relabel-memories.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { buildTeam } from '#test/support/start/team.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t, { jobs: [] })

const { signal } = new AbortController()

/** A team with a tag `secret`, and a member who may see what it is on. */
async function secretTeam() {
  const team = await buildTeam(backend)
  const admin = createTestClient(base, team.adminKey)
  const path = `/v1/orgs/${team.org}`
  const { tag_id: tag } = (await admin.post(`${path}/tags`, { label: 'secret' })).body
  await team.defineRole('board', ['secret'])
  const ann = createTestClient(base, await team.addMember('ann', ['board']))
  const seed = async (month: string) =>
    (await admin.post(`${path}/memories`, { text: `Salaries, ${month}`, tags: ['secret'] })).body
  const seen = async (): Promise<string[]> => {
    const { body } = await ann.post('/v1/memory/search', { query: 'Salaries', limit: 10 })
    return body.memories.map(({ content }: { content: string }) => content.slice(10)).sort()
  }
  const rename = (label: string) => admin.send('PATCH', `${path}/tags/${tag}`, { body: { label } })
  const jobs = async (): Promise<{ data: RelabelJob; wait: number }[]> =>
    (
      await backend.postgres.query<{ data: RelabelJob; wait: number }>(
        `select data, round(extract(epoch from start_after - created_on))::int as wait
         from pgboss.job where name = 'org-relabel' and data->>'org' = $1
         order by start_after`,
        [team.org],
      )
    ).rows
  return { org: team.org, admin, path, tag, seed, seen, rename, jobs }
}

t.test('a former label opens what the tag opens for an hour, and then nothing', async t => {
  const { admin, path, seed, seen, rename, jobs } = await secretTeam()
  const { mem_id: removed } = await seed('April')
  await seed('May')
  await admin.send('DELETE', `${path}/memories/${removed}`)
  t.equal((await rename('launch')).status, 200)
  const [first] = await jobs()
  await relabelMemories(backend, first!.data, signal)
  t.same((await admin.get(`${path}/memories?tag=launch`)).body.items.length, 1)
  await seed('June')
  t.same(await seen(), ['June', 'May'], 'what was being written is not lost')

  await relabelMemories(backend, first!.data, signal)
  const [, last, ...others] = await jobs()
  t.same(others, [], 'however often the first run is repeated')
  t.match(last, { wait: 3_600, data: { last: true, from: 'secret' } })
  await relabelMemories(backend, last!.data, signal)
  t.same((await admin.get(`${path}/memories?tag=secret`)).body.items, [])
  t.same(await seen(), ['June', 'May'])

  t.match((await seed('July')).items, [{ tags: ['secret'], sensitivity: 'restricted' }])
  t.same(await seen(), ['June', 'May'], 'no role allows the label by now')
  t.match((await admin.post(`${path}/memories/${removed}/restore`)).body, { tags: ['launch'] })
  t.same(await seen(), ['April', 'June', 'May'])
  await relabelMemories(backend, last!.data, signal)
  t.same(await seen(), ['April', 'June', 'May'], 'nor after another run')
  t.equal((await rename('secret')).status, 409, 'nor may the tag have it again')
})

t.test('the last run of a renaming leaves the hour of a later one of the same tag', async t => {
  const { seed, seen, rename, jobs } = await secretTeam()
  await seed('May')
  await rename('launch')
  const [first] = await jobs()
  await relabelMemories(backend, first!.data, signal)
  await rename('secret')
  await rename('start')
  const { data: later } = (await jobs()).find(
    ({ data }) => data.from === 'secret' && !data.last && data.operation !== first!.data.operation,
  )!
  await relabelMemories(backend, later, signal)
  const lastRuns = (await jobs()).filter(({ data }) => data.last && data.from === 'secret')
  t.equal(lastRuns.length, 2)
  const [earlierLast, laterLast] = lastRuns

  await relabelMemories(backend, earlierLast!.data, signal)
  await seed('June')
  t.same(await seen(), ['June', 'May'], 'what is being written is not hidden early')
  await relabelMemories(backend, laterLast!.data, signal)
  t.same(await seen(), ['June', 'May'])
  await seed('July')
  t.same(await seen(), ['June', 'May'], 'the label opens nothing by now')
})
