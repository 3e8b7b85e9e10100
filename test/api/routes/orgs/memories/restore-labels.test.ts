import t from 'tap'
import { createTestClient } from '#test/support/start/api.ts'
import { buildTeam, seedTeamMemories } from '#test/support/start/team.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t, { jobs: [] })

/** A tag `people` that one role allows, with a memory; another role that allows nothing of it. */
async function peopleTeam() {
  const team = await buildTeam(backend)
  const admin = createTestClient(base, team.adminKey)
  const path = `/v1/orgs/${team.org}`
  const newTag = async (label: string): Promise<string> =>
    (await admin.post(`${path}/tags`, { label })).body.tag_id
  const people = await newTag('people')
  await team.defineRole('hr', ['people'])
  const all = await team.defineRole('all', ['news'])
  const hrMember = createTestClient(base, await team.addMember('hr@example.com', ['hr']))
  const anyMember = createTestClient(base, await team.addMember('all@example.com', ['all']))
  const [id] = await seedTeamMemories(backend, team, [
    { text: 'Eve leaves the company in May', tags: ['people'] },
  ])
  const rename = (tag: string, label: string) =>
    admin.send('PATCH', `${path}/tags/${tag}`, { body: { label } })
  const search = async (member: typeof admin): Promise<number> =>
    (await member.post('/v1/memory/search', { query: 'Eve leaves', limit: 5 })).body.memories.length
  return {
    admin,
    path,
    people,
    newTag,
    rename,
    at: `${path}/memories/${id}`,
    allow: (labels: string[]) =>
      admin.send('PATCH', `${path}/roles/${all}`, { body: { allowed_tags: labels } }),
    seen: async () => ({ hr: await search(hrMember), all: await search(anyMember) }),
  }
}

t.test('a memory comes back under the present label of its tag', async t => {
  const { admin, path, people, rename, at, allow, seen } = await peopleTeam()
  t.same(await seen(), { hr: 1, all: 0 })
  await admin.send('DELETE', at)
  t.equal((await rename(people, 'hr')).status, 200)
  t.equal((await admin.post(`${path}/tags`, { label: 'people' })).status, 201)
  t.equal((await allow(['people'])).status, 200)
  t.match((await admin.get(`${at}/history`)).body.revisions, [{ before: { tags: ['hr'] } }, {}])
  t.match(await admin.post(`${at}/restore`), { status: 200, body: { tags: ['hr'] } })
  t.same(await seen(), { hr: 1, all: 0 })
})

t.test('so does an earlier state of one that is there, and one that a rename took', async t => {
  const { admin, people, newTag, rename, at, allow, seen } = await peopleTeam()
  const { body } = await admin.send('PATCH', at, { body: { tags: ['other', 'people'] } })
  t.same(body.tags, ['other', 'people'])
  await admin.send('PATCH', at, { body: { tags: ['other'] } })
  await allow(['news', 'other'])
  const news = await newTag('news')
  t.equal((await rename(people, 'hr')).status, 200)
  t.equal((await rename(news, 'people')).status, 200)
  const { revisions } = (await admin.get(`${at}/history`)).body
  t.match(revisions, [
    { before: { tags: ['hr', 'other'] } },
    { before: { tags: ['hr'] }, after: { tags: ['hr', 'other'] } },
    { after: { tags: ['hr'] } },
  ])
  const event = revisions[1].events[0].event_id
  t.match((await admin.post(`${at}/restore`, { event_id: event })).body, { tags: ['hr'] })
  t.same(await seen(), { hr: 1, all: 0 })
})

t.test('one whose tag is gone comes back under a label that no role allows', async t => {
  const { admin, path, people, newTag, rename, at, allow, seen } = await peopleTeam()
  const news = await newTag('news')
  await admin.send('DELETE', at)
  await admin.send('DELETE', `${path}/tags/${people}`)
  t.equal((await rename(news, 'people')).status, 200)
  t.equal((await admin.post(`${at}/restore`)).status, 200)
  t.same(await seen(), { hr: 0, all: 0 })
  await allow(['*'])
  t.same(await seen(), { hr: 0, all: 1 })
})

t.test('409: a role allows the new label of a tag that only removed memories have', async t => {
  const { admin, path, people, rename, at, allow, seen } = await peopleTeam()
  await admin.send('DELETE', at)
  await allow(['numbers'])
  t.match(await rename(people, 'numbers'), { status: 409, body: { error: /role all/ } })
  await admin.send('DELETE', `${at}?permanent=true`)
  t.equal((await rename(people, 'numbers')).status, 200, 'nothing is left to restore')
  t.equal((await admin.get(`${path}/tags`)).body.tags[0].label, 'numbers')
  t.same(await seen(), { hr: 0, all: 0 })
})
