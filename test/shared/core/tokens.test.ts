import { createRequire } from 'node:module'
import t from 'tap'
import { countTokens, countTokensInSteps, importanceFromTokens } from '#shared/core/tokens.ts'
import { unbrokenTexts } from '#test/support/samples/unbroken-texts.ts'

const encoder = createRequire(import.meta.url)('gpt-tokenizer/encoding/o200k_base') as {
  countTokens(text: string): number
}

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

t.test('texts with spaces or marks are counted to the digit', async t => {
  for (const text of [
    'She said: “I’d rather walk – it’s 3.50 €.”\n\n\treturn ids.map(id => `${id}/x`)\n'.repeat(20),
    '我们下周去上海，顺便看看外婆；她住在浦东。'.repeat(40),
    'พรุ่งนี้เราจะไปหาหมอที่เชียงใหม่ แล้วกลับบ้าน '.repeat(30),
    'https://example.com/a?b=YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXo0NTY3ODkw'.repeat(25),
  ])
    t.equal(countTokens(text), encoder.countTokens(text), text.slice(0, 20))
})

t.test('runs without a space are counted in pieces, within one per cent', async t => {
  for (const [script, text] of Object.entries(unbrokenTexts(2_000))) {
    const exact = encoder.countTokens(text)
    t.ok(Math.abs(countTokens(text) - exact) <= exact * 0.01, script)
    t.ok(
      [...countTokensInSteps(text)].length >= 10,
      `${script}: the event loop may turn in between`,
    )
  }
  t.ok([...countTokensInSteps('x'.repeat(100_000), 512)].length < 50, 'ends where it may')
})

t.test('50,000 raw tokens are 150 importance', async t => {
  t.equal(importanceFromTokens(50_000), 150)
  t.equal(importanceFromTokens(0), 0)
})
