import { Marked, type Token, type Tokens } from 'marked'
import t from 'tap'
import { pages } from '#test/support/checks/readme.ts'

/** Pages are for readers: short sentences, short bullets, and a first sentence that says what the page is for. */

const guides = pages.filter(({ file }) => /\/guides\/|^(?:api|scripts)\/README/.test(file))

const countWords = (text: string): number =>
  text.split(/\s+/).filter(word => /\w/.test(word)).length

/** Paragraphs and bullets, without tables and code. */
function proseOf(tokens: readonly Token[]): { kind: string; text: string }[] {
  return tokens.flatMap(token => {
    if (token.type === 'list') {
      return (token as Tokens.List).items.map(({ text }) => ({ kind: 'bullet', text }))
    }
    return token.type === 'paragraph' ? [{ kind: 'paragraph', text: token.raw }] : []
  })
}

for (const { file, text } of guides) {
  t.test(file, t => {
    const tokens = new Marked().lexer(text)
    t.equal(tokens[0]?.type, 'heading', 'begins with its title')
    const first = tokens.find(({ type }) => !['heading', 'html', 'space'].includes(type))
    t.equal(first?.type, 'paragraph', 'then says what it is for')
    for (const { kind, text } of proseOf(tokens)) {
      if (kind === 'bullet') t.ok(countWords(text) <= 60, `a bullet over 60 words: ${text}`)
      // A stop ends a sentence where white space and no small letter follow.
      for (const sentence of text.split(/(?<=[.?!:]\**)\s+(?=[^a-z])/)) {
        t.ok(countWords(sentence) <= 40, `a sentence over 40 words: ${sentence}`)
      }
    }
    t.end()
  })
}
