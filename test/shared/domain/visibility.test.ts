import fc from 'fast-check'
import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { recall } from '#shared/vault/read/search/recall.ts'
import {
  visibilityKey,
  visibilityOf,
  unrestricted,
  isPermitted,
  partitionTagSets,
  sensitivityOf,
  type Visibility,
} from '#shared/domain/visibility.ts'
import {
  deleteSharedMemory,
  updateSharedMemory,
} from '#shared/org/memories/write-shared-memories.ts'
import { createVaultIndex } from '#shared/search/index/vault-index.ts'
import { VaultIndexes } from '#shared/search/index/vault-indexes.ts'
import { termsOf } from '#shared/search/words/index-terms.ts'
import { createIndexSource } from '#shared/vault/read/search/index-source.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { buildTeam, seedTeamMemories } from '#test/support/start/team.ts'
import { resolveCaller } from '#test/support/start/insert-memories.ts'
import { tagSetKey } from '#shared/domain/tags.ts'

const backend = await createTestBackend(t)

const ask = {
  text: 'What do we know about the project',
  limit: 500,
  sessions: [null],
  embeddings: undefined,
  tiers: undefined,
  importance: undefined,
  relevantOnly: false,
}

t.test('all tags of a memory must be allowed; one without any is open', async t => {
  const some: Visibility = { wildcard: false, tags: ['a', 'b'] }
  const nobody: Visibility = { wildcard: false, tags: [] }
  t.ok(isPermitted(some, ['a']))
  t.ok(isPermitted(some, ['b', 'a']))
  t.notOk(isPermitted(some, ['a', 'c']))
  t.ok(isPermitted(some, []))
  t.ok(isPermitted(nobody, []))
  t.notOk(isPermitted(nobody, ['a']))
  t.ok(isPermitted(unrestricted, ['anything']))
  t.notOk(isPermitted({ wildcard: false, tags: ['A', ' a'] }, ['a']), 'to the letter')
  for (const name of ['__proto__', 'constructor', 'toString']) t.notOk(isPermitted(nobody, [name]))
})

t.test('audiences share an image only when they see the same', async t => {
  const label = fc.constantFrom('a', 'b', 'c', '*', '"', '","', '\n', 'a,b', '[]')
  const tags = fc.array(label, { maxLength: 4 })
  const audience = fc
    .record({ wildcard: fc.boolean(), allowedTags: tags })
    .map(member => visibilityOf(member))
  fc.assert(
    fc.property(audience, audience, fc.array(tags), (one, other, memories) => {
      if (visibilityKey(one) !== visibilityKey(other)) return
      for (const memory of memories) {
        if (isPermitted(one, memory) !== isPermitted(other, memory)) throw new Error('differ')
      }
    }),
  )
  fc.assert(
    fc.property(audience, fc.array(tags), (one, memories) => {
      const sets = memories.map(own => ({ tagSet: tagSetKey(own), tags: own, memories: 1 }))
      const { permitted, dropped } = partitionTagSets(one, sets)
      t.equal(permitted.length + dropped.length, sets.length)
      t.ok(permitted.every(set => isPermitted(one, set.tags)))
      t.notOk(dropped.some(set => isPermitted(one, set.tags)))
    }),
  )
})

t.test('the band says who can see it', async t => {
  const roles = [['a', 'b'], ['*'], ['c']]
  t.equal(sensitivityOf([], roles), 'open')
  t.equal(sensitivityOf(['a', 'b'], roles), 'internal')
  t.equal(sensitivityOf(['a', 'c'], roles), 'internal', 'to somebody with two roles')
  t.equal(sensitivityOf(['a', 'x'], roles), 'restricted')
  t.equal(sensitivityOf(['x'], roles), 'restricted')
  t.equal(sensitivityOf(['a'], [['*', 'a']]), 'restricted', 'a role that sees everything')
})

/** One label in many disguises: none may pass for another. */
const labels = ['hr', 'HR', 'hr"', '","', "' or '1'='1", '$ne', '{"$gt":""}', '[]', 'déjà', '*x']

t.test('what members find equals a model, whatever roles, tags and memories are', async t => {
  const tags = fc.uniqueArray(fc.constantFrom(...labels), { maxLength: 3 })
  const world = fc.record({
    memories: fc.array(tags, { minLength: 1, maxLength: 25 }),
    roles: fc.array(fc.oneof({ weight: 6, arbitrary: tags }, fc.constant(['*'])), {
      minLength: 1,
      maxLength: 4,
    }),
    members: fc.array(fc.array(fc.nat(3), { maxLength: 3 }), { minLength: 1, maxLength: 4 }),
    /** Memories that are retagged or removed after everybody has looked once. */
    changes: fc.array(fc.tuple(fc.nat(24), fc.option(tags)), { maxLength: 4 }),
  })
  await fc.assert(
    fc.asyncProperty(world, async ({ memories, roles, members, changes }) => {
      const team = await buildTeam(backend)
      for (const [n, allowed] of roles.entries()) await team.defineRole(`role ${n}`, allowed)
      const keys: string[] = []
      const allowedOf = members.map(held => [...new Set(held.map(n => n % roles.length))])
      for (const [n, held] of allowedOf.entries()) {
        keys.push(
          await team.addMember(
            `member ${n}`,
            held.map(role => `role ${role}`),
          ),
        )
      }
      const ids = await seedTeamMemories(
        backend,
        team,
        memories.map((own, n) => ({ text: `Project fact ${n} of the project`, tags: own })),
      )
      const model = new Map(ids.map((id, n) => [id, memories[n]!]))

      const look = async () => {
        for (const [n, key] of keys.entries()) {
          const allowed = new Set(allowedOf[n]!.flatMap(role => roles[role]!))
          const expected = [...model]
            .filter(([, own]) => allowed.has('*') || own.every(tag => allowed.has(tag)))
            .map(([id]) => id)
          const found = await recall(backend, await resolveCaller(backend, key), ask)
          t.same(found.map(({ memory }) => memory.id).toSorted(), expected.toSorted())
          for (const { memory, source } of found) {
            t.same(memory.tags, model.get(memory.id)!.toSorted())
            t.equal(source, 'org')
          }
        }
      }
      await look()
      for (const [n, own] of changes) {
        const id = ids[n % ids.length]!
        if (!model.has(id)) continue
        const change = { operation: mintId(), actor: 'ann', id }
        if (own) {
          await updateSharedMemory(backend, team, { ...change, tags: own })
          model.set(id, own)
        } else {
          await deleteSharedMemory(backend, team, change)
          model.delete(id)
        }
      }
      await look()
    }),
    { numRuns: 25 },
  )
})

t.test('the database searched in the place of an image finds the same', async t => {
  const team = await buildTeam(backend)
  await team.defineRole('some', ['a', 'b'])
  const key = await team.addMember('some', ['some'])
  const memories = [[], ['a'], ['a', 'b'], ['c'], ['a', 'c'], ['b']]
  await seedTeamMemories(
    backend,
    team,
    memories.map((tags, n) => ({ text: `Project fact ${n}`, tags })),
  )
  const caller = await resolveCaller(backend, key)
  const tooSmall = new VaultIndexes(createIndexSource(backend), {
    budgetBytes: 0,
    createIndex: ({ dimension }) => createVaultIndex({ dimension, termsOf }),
  })
  const textsOf = async (from: typeof backend) =>
    (await recall(from, caller, ask)).map(({ memory }) => memory.text).toSorted()
  const held = await textsOf(backend)
  t.equal(held.length, 4)
  t.same(await textsOf({ ...backend, vaultIndexes: tooSmall }), held)
})

t.test('forbidden memories neither shorten nor weigh on what is permitted', async t => {
  const [alone, crowded] = [await buildTeam(backend), await buildTeam(backend)]
  const open = Array.from({ length: 60 }, (_, n) => ({
    text: `Project note ${n} about ${['cats', 'dogs', 'trains'][n % 3]}`,
    acquiredAt: 1_700_000_000_000 + n * 1_000,
  }))
  const hidden = Array.from({ length: 600 }, (_, n) => ({
    text: `Project project secret ${n} about cats, cats, cats`,
    tags: ['secret'],
    acquiredAt: 1_700_000_000_000 + n * 100,
  }))
  await seedTeamMemories(backend, alone, open)
  await seedTeamMemories(backend, crowded, [...open, ...hidden].slice(0, 400))
  await seedTeamMemories(backend, crowded, hidden.slice(340))
  const rowsOf = async (team: typeof alone) => {
    const caller = await resolveCaller(backend, await team.addMember('nobody'))
    const found = await recall(backend, caller, { ...ask, text: 'project cats', limit: 20 })
    const { space, dimension } = await backend.embedders.get()
    const { scope } = {
      scope: { vault: team.vault, epoch: 1, revision: caller.memberScope!.orgRevision },
    }
    const audience = visibilityOf(caller.memberScope!)
    const image = await backend.vaultIndexes.get({
      scope,
      session: null,
      space,
      dimension,
      audience,
    })
    return {
      // Sums of the same numbers in another order differ in the last digit.
      found: found.map(({ memory, score, relevance }) => [
        memory.text,
        score.toFixed(9),
        relevance.toFixed(9),
      ]),
      held: image === 'too-large' ? -1 : image.byTier[1].count,
    }
  }
  const [one, other] = [await rowsOf(alone), await rowsOf(crowded)]
  t.equal(one.found.length, 20)
  t.same(other.found, one.found, 'the same rows, scores and order')
  t.equal(one.held, 60)
  t.equal(other.held, 60, 'what is searched holds nothing that is forbidden')
})

t.test('another process sees a retagging with the next request', async t => {
  const second = await createTestBackend(t, { config: backend.config })
  const team = await buildTeam(backend)
  await team.defineRole('a', ['a'])
  const key = await team.addMember('ann', ['a'])
  const [id] = await seedTeamMemories(backend, team, [{ text: 'Project fact', tags: ['a'] }])
  const seen = async () =>
    (await recall(second, await resolveCaller(second, key), ask)).map(({ memory }) => memory.tags)
  t.same(await seen(), [['a']])
  await updateSharedMemory(backend, team, { operation: mintId(), actor: 'x', id: id!, tags: ['b'] })
  t.same(await seen(), [])
  await updateSharedMemory(backend, team, { operation: mintId(), actor: 'x', id: id!, tags: [] })
  t.same(await seen(), [[]])
  await team.defineRole('a', ['b'])
  await updateSharedMemory(backend, team, { operation: mintId(), actor: 'x', id: id!, tags: ['b'] })
  t.same(await seen(), [['b']], 'a role that was changed counts at once')
  await team.assignRoles('ann', [])
  t.same(await seen(), [], 'and one that was taken away')
})
