import t from 'tap'
import { fitAnswer } from '#api/mcp/fit-answer.ts'

const at = (n: number): string => new Date(Date.UTC(2026, 0, 1) + n).toISOString()
const row = (n: number, content: string) => ({ id: String(n), timestamp: at(n), content })
/** A piece of 200 tokens and more, as one paste is cut into. */
const piece = 'a line of a log '.repeat(60)

t.test(
  'a page of a time window has its budget and one piece at most, whatever one paste holds',
  t => {
    const paste = Array.from({ length: 700 }, () => row(5, piece))
    const memories = [row(9, 'After.'), ...paste, row(1, 'Before.')]
    const returned = { from: at(0), to: at(9) }
    const fitted = fitAnswer('date_search', { memories, returned }, { max_tokens: 1_000 })
    t.ok(JSON.stringify(fitted).length < 10_000)
    t.match(fitted, {
      truncated: true,
      returned: { from: at(4), to: at(9) },
      note: /69\d rows are left out of this page, 69\d of them of 2026-01-01T00:00:00\.005Z/,
    })
    const forward = fitAnswer(
      'date_search',
      { memories: memories.toReversed(), returned },
      { order: 'oldest_first' },
    )
    t.match(forward, { returned: { from: at(0), to: at(6) }, truncated: true })
    const short = { memories: [row(1, 'One.'), row(2, 'Two.')], returned }
    t.equal(fitAnswer('date_search', short, {}), short)
    const one = { memories: [row(1, piece.repeat(10))], returned }
    t.equal(fitAnswer('date_search', one, {}), one, 'at least one row')
    t.end()
  },
)

t.test('a long text comes as the passage that fits the question, and every row comes', t => {
  const long = `${'x '.repeat(20_000)}the heron is red ${'y '.repeat(20_000)}`
  const memories = Array.from({ length: 200 }, (_, n) => row(n, n === 7 ? long : piece))
  const fitted = fitAnswer('search', { memories }, { query: 'Which colour is the heron?' })
  const shown = fitted.memories as { content: string }[]
  t.equal(shown.length, 200)
  t.match(shown[7]!.content, /^… .*the heron is red.* …$/)
  t.match(fitted.note, /a smaller limit shows them whole/)
  t.ok(JSON.stringify(fitted).length < 80_000)
  const few = { memories: memories.slice(0, 3) }
  t.equal(fitAnswer('search', few, {}), few)
  const items = Array.from({ length: 200 }, () => ({ text: piece }))
  t.ok(JSON.stringify(fitAnswer('list', { items }, {})).length < 70_000)
  t.equal(fitAnswer('stats', { memories: 3 }, {}).memories, 3)
  t.end()
})
