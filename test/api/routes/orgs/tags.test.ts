import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { addSharedMemories } from '#shared/org/memories/write-shared-memories.ts'
import { createTestClient, startJobWorkers } from '#test/support/start/api.ts'
import { buildOrg } from '#test/support/start/admin.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { sharedVaultOf } from '#test/support/checks/observe.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t, { jobs: [] })
const { admin, org, path } = await buildOrg(backend, base)

t.test('201: a tag, with a question when it brings none', async t => {
  const given = {
    label: 'Payroll',
    question: 'Does this mention {salaries} or "bonuses"?',
    examples: ['Ann earns 5'],
    negatives: ['Ann works'],
  }
  const { status, body } = await admin.post(`${path}/tags`, given)
  t.equal(status, 201)
  t.match(body, { ...given, org_id: org })
  const { body: bare } = await admin.post(`${path}/tags`, { label: 'legal' })
  t.match(bare, { question: /legal/, examples: [], negatives: [] })
  t.strictSame((await admin.get(`${path}/tags`)).body, { tags: [body, bare] })
})

t.test('200: PATCH writes only what is there', async t => {
  const { body: tag } = await admin.post(`${path}/tags`, { label: 'p', examples: ['a'] })
  const at = `${path}/tags/${tag.tag_id}`
  const patch = async (body: unknown) => (await admin.send('PATCH', at, { body })).body
  t.strictSame(await patch({ question: 'Why?' }), { ...tag, question: 'Why?' })
  t.strictSame(await patch({ examples: [] }), { ...tag, question: 'Why?', examples: [] })
  t.strictSame(await patch({ label: 'p' }), { ...tag, question: 'Why?', examples: [] })
})

t.test('a new label goes along to roles at once and to memories soon', async t => {
  const { admin, org, path, email } = await buildOrg(backend, base)
  const { body: tag } = await admin.post(`${path}/tags`, { label: 'money' })
  const { body: role } = await admin.post(`${path}/roles`, {
    name: 'Books',
    allowed_tags: ['tax', 'money', 'x'],
  })
  const { body: key } = await admin.post(`${path}/keys`, { team_member_id: 'ann' })
  await admin.post(`${path}/role-assignments`, { key_id: key.id, role_ids: [role.role_id] })
  const place = { org, ...(await sharedVaultOf(backend, org)) }
  await addSharedMemories(backend, place, {
    operation: mintId(),
    actor: email,
    items: [['money'], ['tax', 'money'], ['tax']].map((tags, n) => ({
      text: `The budget is ${n}`,
      tags,
      confidence: 1,
      author: email,
      reviewed: true,
      acquiredAt: Date.now(),
    })),
  })
  const member = createTestClient(base, key.key_id)
  const seen = async () => {
    const { body } = await member.post('/v1/memory/search', { query: 'budget', limit: 10 })
    return (body.memories ?? body.results).length as number
  }
  t.equal(await seen(), 3)

  const at = `${path}/tags/${tag.tag_id}`
  t.equal((await admin.send('PATCH', at, { body: { label: 'Geld' } })).body.label, 'Geld')
  const { roles } = (await admin.get(`${path}/roles`)).body
  t.strictSame(roles[0].allowed_tags, ['tax', 'Geld', 'x'])
  t.equal(await seen(), 3, 'under either label')
  const taken = await admin.post(`${path}/tags`, { label: 'money' })
  t.match(taken, { status: 409, body: { hint: /again/ } }, 'memories still bear it')

  await startJobWorkers(backend, 'org-relabel')
  const borne = () =>
    backend.mongo.memories.countDocuments({ vault: { $eq: place.vault }, tags: { $eq: 'money' } })
  await waitUntil('memories bear the new label', async () => (await borne()) === 0)
  t.equal(await seen(), 3)
  await waitUntil(
    'the old label is free',
    async () => (await admin.post(`${path}/tags`, { label: 'money' })).status === 201,
  )
  t.equal(await seen(), 3)

  await admin.send('DELETE', at)
  t.strictSame((await admin.get(`${path}/roles`)).body.roles[0].allowed_tags, ['tax', 'x'])
  t.equal(await seen(), 1, 'what a tag kept closed stays closed')
  await admin.send('PATCH', `${path}/roles/${role.role_id}`, { body: { allowed_tags: ['*'] } })
  t.equal(await seen(), 3)
})

/** A team whose member may see what is tagged `launch`, and nothing else. */
async function launchTeam() {
  const { admin, path } = await buildOrg(backend, base)
  const newTag = async (label: string): Promise<string> =>
    (await admin.post(`${path}/tags`, { label })).body.tag_id
  const [launch, finance] = [await newTag('launch'), await newTag('finance')]
  const { body: role } = await admin.post(`${path}/roles`, { name: 'L', allowed_tags: ['launch'] })
  const { body: key } = await admin.post(`${path}/keys`, { team_member_id: 'ann' })
  await admin.post(`${path}/role-assignments`, { key_id: key.id, role_ids: [role.role_id] })
  const seed = (text: string, tags: string[]) => admin.post(`${path}/memories`, { text, tags })
  await seed('The launch is on May 5', ['launch'])
  await seed('The salary budget is 5 million', ['finance'])
  const member = createTestClient(base, key.key_id)
  return {
    admin,
    path,
    seed,
    finance,
    role: role.role_id as string,
    rename: (label: string) => admin.send('PATCH', `${path}/tags/${launch}`, { body: { label } }),
    async seen(): Promise<number> {
      const query = 'When is the launch, what is the budget'
      const { body } = await member.post('/v1/memory/search', { query, limit: 10 })
      return body.memories.length
    },
  }
}

t.test('409: a new label never opens what bears it already', async t => {
  const { admin, path, seed, finance, rename, seen } = await launchTeam()
  await admin.send('DELETE', `${path}/tags/${finance}`)
  t.equal(await seen(), 1)
  t.match(await rename('finance'), { status: 409, body: { hint: /memories\?tag=/ } })
  await seed('The board leaves', ['board'])
  t.equal((await rename('board')).status, 409, 'nor what no tag ever stood for')
  t.equal(await seen(), 1)

  // Created again it is as closed as it was, under this label and any other.
  const { status, body: again } = await admin.post(`${path}/tags`, { label: 'finance' })
  t.equal(status, 201)
  t.equal(await seen(), 1)
  t.equal((await rename('finance')).status, 409)
  await admin.send('DELETE', `${path}/tags/${again.tag_id}`)
  t.equal((await rename('finance')).status, 409)

  const { items } = (await admin.get(`${path}/memories?tag=finance`)).body
  for (const { mem_id } of items) {
    await admin.send('PATCH', `${path}/memories/${mem_id}`, { body: { tags: ['money'] } })
  }
  t.equal((await rename('finance')).status, 200, 'free once nothing bears it')
  t.equal(await seen(), 1)
  t.equal((await rename('launch')).status, 200, 'and a tag’s own label of before always is')
  t.equal(await seen(), 1)
})

t.test('409: a new label that a role allows which does not see the tag', async t => {
  const { admin, path, finance, role, seen } = await launchTeam()
  const at = `${path}/roles/${role}`
  await admin.send('PATCH', at, { body: { allowed_tags: ['launch', 'numbers'] } })
  const rename = (label: string) =>
    admin.send('PATCH', `${path}/tags/${finance}`, { body: { label } })
  t.match(await rename('numbers'), { status: 409, body: { error: /role L/ } })
  t.equal(await seen(), 1)
  await admin.send('PATCH', at, { body: { allowed_tags: ['launch', 'numbers', 'finance'] } })
  t.equal(await seen(), 2)
  t.equal((await rename('numbers')).status, 200)
  t.equal(await seen(), 2)
})

t.test('a role that allows both labels allows the one that is left once', async t => {
  const { admin, path } = await buildOrg(backend, base)
  const { body: tag } = await admin.post(`${path}/tags`, { label: 'a' })
  await admin.post(`${path}/roles`, { name: 'R', allowed_tags: ['b', 'a', 'c'] })
  await admin.send('PATCH', `${path}/tags/${tag.tag_id}`, { body: { label: 'b' } })
  t.strictSame((await admin.get(`${path}/roles`)).body.roles[0].allowed_tags, ['b', 'c'])
})

t.test('409: a label that is taken', async t => {
  const { body: tag } = await admin.post(`${path}/tags`, { label: 'health' })
  t.equal((await admin.post(`${path}/tags`, { label: 'Health' })).status, 409)
  const { body: other } = await admin.post(`${path}/tags`, { label: 'care' })
  const body = { label: 'HEALTH' }
  t.equal((await admin.send('PATCH', `${path}/tags/${other.tag_id}`, { body })).status, 409)
  t.equal((await admin.send('PATCH', `${path}/tags/${tag.tag_id}`, { body })).status, 200)
  const answers = await Promise.all(
    Array.from({ length: 6 }, () => admin.post(`${path}/tags`, { label: 'Race' })),
  )
  t.strictSame(answers.map(({ status }) => status).sort(), [201, 409, 409, 409, 409, 409])
})

t.test('400: no tag is called as all of them', async t => {
  const { tags } = (await admin.get(`${path}/tags`)).body
  const star = await admin.send('PATCH', `${path}/tags/${tags[0].tag_id}`, { body: { label: '*' } })
  t.equal(star.status, 400)
})

t.test(
  '400: a blank name or label; white space and the way of writing an accent say nothing',
  async t => {
    const { admin, path } = await buildOrg(backend, base)
    for (const [at, body] of [
      ['/v1/orgs', { name: '  ' }],
      [`${path}/roles`, { name: ' ' }],
      [`${path}/roles`, { name: 'x', allowed_tags: ['ok', ' '] }],
      [`${path}/tags`, { label: '\u00A0' }],
      [`${path}/tags`, { label: ' * ' }],
    ] as const) {
      const answer = await admin.post(at, body)
      t.equal(answer.status, 400, `${at} ${JSON.stringify(body)}`)
    }
    const { body: tag } = await admin.post(`${path}/tags`, { label: ' caf\u0065\u0301 ' })
    t.equal(tag.label, 'café')
    const { body: role } = await admin.post(`${path}/roles`, {
      name: ' Baristas ',
      allowed_tags: ['caf\u0065\u0301', ' café', '* '],
    })
    t.match(role, { name: 'Baristas', allowed_tags: ['café', '*'] })
    for (const [at, body] of [
      [path, { name: ' ' }],
      [`${path}/roles/${role.role_id}`, { name: ' ' }],
      [`${path}/roles/${role.role_id}`, { allowed_tags: [' '] }],
      [`${path}/tags/${tag.tag_id}`, { label: ' ' }],
    ] as const) {
      t.equal((await admin.send('PATCH', at, { body })).status, 400, at)
    }
    t.equal((await admin.post(`${path}/tags`, { label: 'café' })).status, 409)
  },
)
