import t from 'tap'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { insertStoredMemories, readVaultScope } from '#test/support/checks/stored-memories.ts'
import { buildTeam, seedTeamMemories } from '#test/support/start/team.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t, { jobs: [] })
const begin = Date.parse('2025-03-01T12:00:00.000Z')
const day = 86_400_000

type Entry = { quote: string; source: string; author?: string; memory_id: string }
const read = async (key: string): Promise<{ items: Entry[]; text: string | null }> => {
  const { status, body } = await createTestClient(base, key).get('/v1/memory/profile')
  t.equal(status, 200)
  return body
}
const brief = ({ items }: { items: Entry[] }): string[] =>
  items.map(({ source, quote }) => `${source}: ${quote}`)

t.test('two vaults have profiles of their own', async t => {
  const [one, other] = [await buildKey(backend), await buildKey(backend)]
  await insertStoredMemories(backend, await readVaultScope(backend, one), [
    { text: 'My name is Ada.', at: begin },
  ])
  t.same(brief(await read(one)), ['core: My name is Ada.'])
  t.same(brief(await read(other)), [])
  await insertStoredMemories(backend, await readVaultScope(backend, other), [
    { text: 'My name is Bob.', at: begin + day },
  ])
  t.same(brief(await read(other)), ['core: My name is Bob.'])
  t.same(brief(await read(one)), ['core: My name is Ada.'])
})

t.test('a member sees their own and what roles allow of the team, by its authors', async t => {
  const team = await buildTeam(backend)
  await team.defineRole('Money', ['finance'])
  const ann = await team.addMember('ann@example.com')
  const ben = await team.addMember('ben@example.com', ['Money'])
  await insertStoredMemories(backend, await readVaultScope(backend, ann), [
    { text: 'I live in Porto.', at: begin },
  ])
  const [, hidden] = await seedTeamMemories(backend, team, [
    { text: 'We deploy on Fridays, from now on.', author: 'cy@example.com', acquiredAt: begin },
    { text: 'Never tell clients the margin.', tags: ['finance'], acquiredAt: begin + day },
    { text: 'I live in Ghent.', author: 'cy@example.com', acquiredAt: begin + 2 * day },
  ])
  t.same(brief(await read(ann)), [
    'org: We deploy on Fridays, from now on.',
    'core: I live in Porto.',
    'org: I live in Ghent.',
  ])
  const { items, text } = await read(ann)
  t.equal(items[1]!.source, 'core', 'what a colleague says of themselves replaces nothing')
  t.match(items[2], { author: 'cy@example.com', until: null })
  t.match(text, '- cy@example.com: I live in Ghent. (2025-03-03)')
  t.notMatch(JSON.stringify(await read(ann)), /margin/)
  const own = ['org: Never tell clients the margin.', 'org: We deploy on Fridays, from now on.']
  t.same(brief(await read(ben)), [...own, 'org: I live in Ghent.'])

  t.comment('from the next request on after roles change')
  await team.assignRoles('ben@example.com', [])
  t.notMatch(JSON.stringify(await read(ben)), /margin/)
  await team.assignRoles('ann@example.com', ['Money'])
  t.ok((await read(ann)).items.some(({ memory_id }) => memory_id === hidden))
})
