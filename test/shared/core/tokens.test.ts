import t from 'tap'
import { importanceFromTokens, countTokens } from '#shared/core/tokens.ts'

t.test('counts o200k_base tokens', async t => {
  t.equal(countTokens(''), 0)
  t.equal(countTokens('hello world'), 2)
  t.equal(countTokens('<|endoftext|>') > 1, true, 'special tokens are plain text')
})

t.test('long texts are counted in slices, within one per cent, characters whole', async t => {
  const sentence = 'The quick brown fox jumps over the lazy dog near the river bank. '
  const inOneGo = countTokens(sentence.repeat(30))
  const inSlices = countTokens(sentence.repeat(600))
  t.ok(Math.abs(inSlices - inOneGo * 20) / (inOneGo * 20) < 0.01)
  t.ok(countTokens('😀'.repeat(5_000)) >= 5_000)
})

t.test('50,000 raw tokens are 150 importance', async t => {
  t.equal(importanceFromTokens(50_000), 150)
  t.equal(importanceFromTokens(0), 0)
})
