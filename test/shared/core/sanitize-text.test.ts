import t from 'tap'
import { sanitizeJson } from '#shared/core/sanitize-text.ts'

const nested = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels))

t.test('lone surrogates and NUL become U+FFFD, at every depth; pairs stay', async t => {
  t.same(sanitizeJson({ a: ['\uD800x', { b: 'y\u0000' }], c: '😀' }), {
    a: ['\uFFFDx', { b: 'y\uFFFD' }],
    c: '😀',
  })
  t.equal(sanitizeJson('\uDFFF'), '\uFFFD')
})

t.test('64 levels pass, 65 and 200,000 are refused', async t => {
  t.same(sanitizeJson(nested(64)), nested(64))
  t.throws(() => sanitizeJson(nested(65)), { message: /64 levels/, reason: 'invalid' })
  t.throws(() => sanitizeJson(nested(200_000)), { message: /64 levels/, reason: 'invalid' })
})

t.test('what is not text is left alone', async t => {
  for (const value of [null, 1, true, []]) t.same(sanitizeJson(value), value)
})
