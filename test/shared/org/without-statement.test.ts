import t from 'tap'
import { isDeepStrictEqual } from 'node:util'
import type { SharedStatement } from '#shared/org/memories/shared-statements.postgres.ts'
import type { MemorySnapshot } from '#shared/org/memories/shared-writes.postgres.ts'
import { attributeTo } from '#shared/org/memories/write-shared-memories.ts'
import { withoutStatement } from '#shared/org/memories/withdraw-statement.ts'

type Said = { author: string; action: 'NONE' | 'UPDATE' }

const authors = ['ada', 'bob', 'carl']

/** Everything that members can say `count` times after the first words, which are Ada's. */
function* sequences(count: number): Generator<Said[]> {
  if (count === 0) yield []
  else {
    for (const rest of sequences(count - 1)) {
      for (const author of authors) {
        for (const action of ['NONE', 'UPDATE'] as const) yield [...rest, { author, action }]
      }
    }
  }
}

function* permutations<T>(items: readonly T[]): Generator<T[]> {
  if (items.length === 0) yield []
  for (const [index, item] of items.entries()) {
    for (const rest of permutations(items.toSpliced(index, 1))) yield [item, ...rest]
  }
}

/** A memory after these were said of it; a NONE is in the words of the memory, or in its own. */
function said(sequence: readonly Said[], inOwnWords: boolean) {
  const toStatement = ({ author, action }: Said | { author: string; action: 'ADD' }, n: number) =>
    ({
      id: `${n}`,
      author,
      turn: `${n}`,
      position: 0,
      memory: 'm',
      action,
      outdated: false,
      text: `words ${n}`,
      saidAt: new Date(1_000 * (n + 1)),
      recordedAt: new Date(1_000 * (n + 1) + 500),
    }) satisfies SharedStatement
  const first = toStatement({ author: 'ada', action: 'ADD' }, 0)
  let memory: MemorySnapshot = {
    text: first.text,
    tags: [],
    confidence: 1,
    author: 'ada',
    reviewed: false,
    acquiredAt: first.saidAt.getTime(),
    tokens: 2,
  }
  const statements: SharedStatement[] = [first]
  for (const [index, one] of sequence.entries()) {
    const statement = toStatement(one, index + 1)
    if (one.action === 'UPDATE') {
      const by = { author: one.author, saidAt: statement.saidAt.getTime() }
      memory = { ...memory, text: statement.text, ...attributeTo(memory, by) }
    }
    const text = one.action === 'NONE' && !inOwnWords ? memory.text : statement.text
    statements.push({ ...statement, text })
  }
  return { memory, statements }
}

/** Takes statements back one after another. @returns the memory after each, up to its removal. */
function takenBack(
  { memory, statements }: ReturnType<typeof said>,
  order: readonly string[],
): { memory: MemorySnapshot | null; left: SharedStatement[]; isSettled: boolean }[] {
  let left = statements
  let now: MemorySnapshot | null = memory
  return order.flatMap(id => {
    if (!now) return []
    const statement = left.find(one => one.id === id)!
    left = left.filter(one => one !== statement)
    now = withoutStatement(now, statement, left)
    // Each withdrawal is computed twice: the second time nothing is left to do.
    const isSettled = !now || isDeepStrictEqual(withoutStatement(now, statement, left), now)
    return [{ memory: now, left, isSettled }]
  })
}

for (const inOwnWords of [false, true]) {
  t.test(`a memory stays while one statement stands (own words: ${inOwnWords})`, async t => {
    const wrong: unknown[] = []
    for (const count of [1, 2, 3]) {
      for (const sequence of sequences(count)) {
        const story = said(sequence, inOwnWords)
        for (const order of permutations(story.statements.map(({ id }) => id))) {
          const steps = takenBack(story, order)
          const isRight = steps.every(
            ({ memory, left, isSettled }) =>
              isSettled &&
              (memory ? left.some(({ author }) => author === memory.author) : left.length === 0),
          )
          if (!isRight) wrong.push({ sequence, order })
        }
      }
    }
    t.same(wrong.slice(0, 3), [], `${wrong.length} stories`)
  })
}

t.test('three say the same: it stays seen, in the name of who still says it', async t => {
  const story = said(
    ['bob', 'carl'].map(author => ({ author, action: 'NONE' })),
    false,
  )
  for (const order of permutations(['0', '1', '2'])) {
    const [first, second, third] = takenBack(story, order)
    for (const { memory, left } of [first!, second!]) {
      t.match(memory, { text: 'words 0', pending: undefined })
      t.ok(left.some(({ author }) => author === memory!.author))
    }
    t.equal(third!.memory, null)
  }
})

t.test('words said before an update wait for a person once it is taken back', async t => {
  const story = said(
    [
      { author: 'carl', action: 'NONE' },
      { author: 'bob', action: 'UPDATE' },
    ],
    false,
  )
  for (const order of permutations(['0', '2'])) {
    const [, last] = takenBack(story, order)
    t.match(last!.memory, { text: 'words 0', author: 'carl', pending: true, reviewed: false })
  }
})

t.test('what was outdated when it was said does not come back', async t => {
  const { memory, statements } = said([{ author: 'bob', action: 'NONE' }], true)
  const [first, second] = statements
  t.equal(withoutStatement(memory, first!, [{ ...second!, outdated: true }]), null)
})
