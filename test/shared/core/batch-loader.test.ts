import t from 'tap'
import { setTimeout as delay } from 'node:timers/promises'
import { batchLoader } from '#shared/core/batch-loader.ts'

t.test('questions that come while a read is under way share the next one', async t => {
  const reads: number[][] = []
  const ask = batchLoader<number, number>(
    async numbers => {
      reads.push(numbers)
      await delay(20)
      return numbers.map(number => number * 2)
    },
    { concurrency: 1, batchMax: 3 },
  )
  const answers = await Promise.all([1, 2, 3, 4, 5].map(ask))
  t.same(answers, [2, 4, 6, 8, 10])
  t.same(reads, [[1], [2, 3, 4], [5]])
})

t.test('an answer is never older than its question', async t => {
  let value = 1
  const ask = batchLoader<null, number>(
    async questions => {
      const seen = value
      await delay(10)
      return questions.map(() => seen)
    },
    { concurrency: 1, batchMax: 10 },
  )
  const first = ask(null)
  value = 2
  t.same(await Promise.all([first, ask(null)]), [1, 2])
})

t.test('a read that fails fails those who asked, and the next is tried', async t => {
  let fail = true
  const ask = batchLoader<number, number>(
    async numbers => {
      if (fail) throw new Error('away')
      return numbers
    },
    { concurrency: 2, batchMax: 10 },
  )
  await t.rejects(ask(1), { message: 'away' })
  fail = false
  t.equal(await ask(2), 2)
})
