import { readFileSync } from 'node:fs'
import t from 'tap'
import { countTokens, countTokensByLine } from '#shared/core/tokens.ts'

const words = readFileSync(new URL('../../../README.md', import.meta.url), 'utf8').split(/\s+/)
const endings = ['.', '!', '…', ')', ':', ' ', '\t', '://', "'s", '7', '漢字', '😀', '']
const beginnings = ['- ', '', '/', ' ', '\n', '\r\n', '#', '[', '"', 'é', '12']

/** Texts of lines that end and begin in every way. */
function textOf(seed: number, lines: number): string {
  let text = ''
  for (let line = 0; line < lines; line++) {
    const at = (seed * 31 + line * 17) % (words.length - 5)
    const ending = endings[(seed + line) % endings.length]!
    text += `${beginnings[(seed * 3 + line) % beginnings.length]}${words.slice(at, at + 5).join(' ')}${ending}\n`
  }
  return text
}

t.test('lines are counted as the whole text is', async t => {
  for (let seed = 0; seed < 400; seed++) {
    const text = textOf(seed, 6)
    t.equal(countTokensByLine(text), countTokens(text), JSON.stringify(text))
    t.equal(countTokensByLine(text), countTokens(text), 'counted before')
  }
})

t.test('edges', async t => {
  const texts = ['', '\n', '\n\n\n', 'a', 'a\n', '\r\na', 'a\r\n\r\nb', 'a\n\u2028b', 'a\n\u00a0b']
  for (const text of texts)
    t.equal(countTokensByLine(text), countTokens(text), encodeURIComponent(text))
})
