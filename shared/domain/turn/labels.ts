/** Labels at the beginning of a line, as prompt templates write them, in lower case. */
const questionLabels = new Set([
  'question',
  'user question',
  'current question',
  'new question',
  'query',
  'user query',
  'search query',
  'user',
  'user input',
  'user message',
  'user request',
  'human',
  'input',
  'my question',
  'the question',
  'follow up question',
  'follow-up question',
  'follow up input',
])

const contextLabels = new Set([
  'context',
  'retrieved context',
  'relevant context',
  'additional context',
  'background',
  'documents',
  'relevant documents',
  'retrieved documents',
  'sources',
  'search results',
  'web search results',
  'knowledge',
  'knowledge base',
  'relevant information',
  'references',
  'passages',
  'excerpts',
  'chat history',
  'conversation history',
  'history',
  'previous conversation',
  'current conversation',
  'instructions',
  'instruction',
  'rules',
  'guidelines',
  'context information is below',
  'memory',
])

const answerLabels = new Set([
  'answer',
  'helpful answer',
  'final answer',
  'your answer',
  'response',
  'assistant',
  'ai',
  'standalone question',
  'output',
])

/** A question label that may follow other words on its line: no person writes it of themselves. */
const inlineLabels = [
  'User question:',
  'User query:',
  'User message:',
  'User input:',
  'User request:',
]

/** Beginnings of instructions to a model, in lower case. */
const instructionBeginnings = [
  'you are ',
  'you will ',
  'your task ',
  'your job ',
  'act as ',
  'answer ',
  'respond ',
  'reply ',
  'use the ',
  'using the ',
  'given the ',
  'given a ',
  'based on ',
  'the following ',
  'below ',
  'context information is below',
  'as an ',
]

type LabelledLine = {
  kind: 'question' | 'context' | 'answer'
  start: number
  /** Where the text behind the label begins. */
  textStart: number
}

const linesMax = 20_000
const labelMax = 40
/** Shorter context, and what stands on the label's line, may be what a person says before asking. */
const quotedContextMin = 300

/**
 * The question of a filled-in prompt template: the text behind its last question label. Its context,
 * instructions and answer label are the template's.
 *
 * @returns undefined where the text is no template: a person may label their own lines.
 */
export function findTemplateQuestion(text: string): { start: number; end: number } | undefined {
  return findInlineQuestion(text) ?? findLabelledQuestion(text)
}

function findInlineQuestion(text: string): { start: number; end: number } | undefined {
  if (!beginsWithInstruction(text)) return undefined
  const [label, at] = inlineLabels
    .map((label): [string, number] => [label, text.lastIndexOf(label)])
    .reduce((last, found) => (found[1] > last[1] ? found : last))
  if (at <= 0) return undefined
  const start = at + label.length
  const answer = labelledLines(text.slice(start)).find(({ kind }) => kind === 'answer')
  const end = answer ? start + answer.start : text.length
  return text.slice(start, end).trim() === '' ? undefined : { start, end }
}

function findLabelledQuestion(text: string): { start: number; end: number } | undefined {
  const lines = labelledLines(text)
  const isQuestion = ({ kind, textStart }: LabelledLine, index: number): boolean =>
    kind === 'question' && text.slice(textStart, lines[index + 1]?.start).trim() !== ''
  const index = lines.findLastIndex(isQuestion)
  const question = lines[index]
  if (question === undefined || !isTemplate(text, lines)) return undefined
  return { start: question.textStart, end: lines[index + 1]?.start ?? text.length }
}

/** Whether the labels are a program's: instructions or an empty answer are around them, or long context. */
function isTemplate(text: string, lines: readonly LabelledLine[]): boolean {
  const contexts = lines.filter(({ kind }) => kind === 'context')
  const quotesAtLength = lines.some(
    ({ kind, textStart }, index) =>
      kind === 'context' &&
      isBlankBefore(text, textStart) &&
      (lines[index + 1]?.start ?? text.length) - textStart >= quotedContextMin,
  )
  const last = lines.at(-1)!
  const awaitsAnswer = last.kind === 'answer' && text.slice(last.textStart).trim() === ''
  const instructs = beginsWithInstruction(text)
  if (contexts.length === 0) return awaitsAnswer && instructs
  return awaitsAnswer || instructs || quotesAtLength
}

/** Whether nothing follows on the line. */
function isBlankBefore(text: string, from: number): boolean {
  let at = from
  while (text[at] === ' ' || text[at] === '\r') at++
  return at >= text.length || text[at] === '\n'
}

function beginsWithInstruction(text: string): boolean {
  const beginning = text
    .trimStart()
    .slice(0, 64)
    .toLowerCase()
    .replace(/^[#*\s]+/, '')
  return instructionBeginnings.some(instruction => beginning.startsWith(instruction))
}

function labelledLines(text: string): LabelledLine[] {
  const lines: LabelledLine[] = []
  let start = 0
  for (let count = 0; start < text.length && count < linesMax; count++) {
    const lineEnd = text.indexOf('\n', start)
    const end = lineEnd < 0 ? text.length : lineEnd
    const labelled = readLabel(text, start, end)
    if (labelled) lines.push(labelled)
    start = end + 1
  }
  return lines
}

function readLabel(text: string, start: number, lineEnd: number): LabelledLine | undefined {
  const line = text.slice(start, Math.min(lineEnd, start + labelMax + 1))
  const colon = line.search(/[:.：]/)
  if (colon < 0) return undefined
  const label = line
    .slice(0, colon)
    .replaceAll(/[#*_\s-]+/g, ' ')
    .trim()
    .toLowerCase()
  const kind = questionLabels.has(label)
    ? 'question'
    : contextLabels.has(label)
      ? 'context'
      : answerLabels.has(label)
        ? 'answer'
        : undefined
  // Markup around the label may close behind the colon.
  const textStart = start + colon + (line.startsWith('**', colon + 1) ? 3 : 1)
  return kind && { kind, start, textStart }
}
