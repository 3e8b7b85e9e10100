import t from 'tap'
import { sanitizeJson } from '#shared/core/sanitize-text.ts'
import { countTokens } from '#shared/core/tokens.ts'
import { renderContextBlock } from '#shared/domain/context-block.ts'
import { removeContextBlocks } from '#shared/domain/echoes.ts'
import { parseTurns } from '#shared/domain/turn/conversation.ts'
import { embed } from '#shared/models/local-embedder.ts'
import { splitText } from '#shared/models/split-text.ts'
import { extractJson } from '#shared/models/completion-model.ts'
import { matchesRule, truncateNote } from '#shared/org/base/rule-matching.ts'
import { detectors, redactionKinds, type RedactionKind } from '#shared/privacy/detectors.ts'
import { redactText } from '#shared/privacy/redact.ts'
import { findStatements } from '#shared/search/profile/find-statements.ts'
import { selectQuestions } from '#shared/search/query/select-questions.ts'
import { parseTimeExpressions } from '#shared/search/query/parse-time-expressions.ts'
import { hashText } from '#shared/search/columns/text-hash.ts'
import { foldText } from '#shared/search/words/writing-systems.ts'
import { termsOf } from '#shared/search/words/index-terms.ts'
import { excludeTexts } from '#shared/vault/read/search/already-in-conversation.ts'
import { cpuMs, judgeGrowth } from '#test/support/checks/growth.ts'
import { commonParts, fillers, hostileParts } from '#test/support/checks/regex-fillers.ts'

/* No text may hold the event loop: what reads whole texts costs in proportion to their length. */

const now = Date.parse('2026-11-20T18:20:00Z')
const memoryLine = '[3 hours ago · 2026-11-20 15:15 UTC · user] '

const render = (text: string): unknown =>
  renderContextBlock([{ id: 'a', tier: 1, role: 'user', text, at: now, tokens: 1 }], now)

const readers: Record<string, (text: string) => unknown> = {
  'a block that comes back': removeContextBlocks,
  'a block with one line': text =>
    removeContextBlocks(`<memory_context>\n${memoryLine}${text}\n</memory_context>`),
  'a memory in a block': render,
  'a turn': text => parseTurns([{ role: 'user', content: [{ type: 'text', text }] }]),
  'a JSON value': text => sanitizeJson({ [text]: text }),
  tokens: countTokens,
  terms: termsOf,
  folding: foldText,
  'a hash': hashText,
  'an embedding': embed,
  'parts to embed': splitText,
  'times in a query': text => parseTimeExpressions(text, now),
  'texts of a conversation': text =>
    excludeTexts(text.match(/[^]{1,3000}/g)!).has(0, () => text.slice(0, 3_000)),
  'statements of a person': findStatements,
  questions: selectQuestions,
  'a rule': text => matchesRule({ match: 'salaryman of the year', note: '' }, text),
  'a note': truncateNote,
  'an answer of a model': extractJson,
}

const parts = [
  ...commonParts,
  '<memory_context>',
  '<memory_context>\n',
  `<memory_context>\n${memoryLine}`,
  'memory_context',
  '< /',
  '< / memory_context',
  'current',
  '```json',
  '```{',
  '漢字 ',
  'e\u0301',
  '👩‍👩‍👧‍👦',
  'in May ',
  '2026-11-20 ',
  "it's ",
  'I live in ',
  "my sister's name is ",
  'we changed from ',
  'always ',
  'A. ',
  'salaryman of the ',
]

for (const [name, read] of Object.entries(readers)) {
  t.test(`${name}: whatever the text is, the cost grows with its length`, async t => {
    const faults = parts.flatMap(part =>
      fillers(part, 1).flatMap((_, kind) => {
        const fault = judgeGrowth(length => fillers(part, length)[kind]!, read)
        return fault === undefined ? [] : [`${JSON.stringify(part)}: ${fault}`]
      }),
    )
    t.same(faults, [])
  })
}

t.test('redaction of hostile texts costs like that of prose', async t => {
  const all = new Set<RedactionKind>(redactionKinds)
  const prose = 'My cat is called Ada, she was born on 2021-05-14 at 16:30 and hates thunder. '
  const length = 16 * 1024
  const cost = (text: string): number =>
    Math.min(...Array.from({ length: 3 }, () => cpuMs(() => redactText(text, all))))
  const likeProse = prose.repeat(Math.ceil(length / prose.length))
  // What is found costs more than what is not: digits are summed, letters counted.
  const costMax = 12 * cost(likeProse)
  /**
   * Side by side, since the machine may have become slower. A text that costs like prose is called dear only when the
   * least of three measurements is twelve times too much, three times in a row: with p for one such measurement the
   * chance is p⁹, and for p = 0.1 and the 5,100 texts here 5 · 10⁻⁶.
   */
  const isDear = (text: string): boolean => [1, 2, 3].every(() => cost(text) > 12 * cost(likeProse))
  const hostile = new Set([
    ...parts,
    ...detectors.flatMap(({ pattern }) => hostileParts(pattern)),
    ...hostileParts(/-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----/),
    ...hostileParts(/-----END [A-Z ]{0,30}PRIVATE KEY-----/),
  ])
  const faults: string[] = []
  for (const part of hostile) {
    for (const text of fillers(part, length)) {
      const ms = cpuMs(() => redactText(text, all))
      if (ms > costMax && isDear(text)) faults.push(`${JSON.stringify(part)}: ${ms} ms`)
    }
  }
  t.same(faults, [])
  t.comment(`at most ${Math.round(costMax)} ms for 16 KiB; ${hostile.size} kinds of texts`)
})
