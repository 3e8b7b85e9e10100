import { readFileSync } from 'node:fs'

const pages = readFileSync(new URL('question-samples.txt', import.meta.url), 'utf8').split('\n== ')

/** A page of `question-samples.txt`: what is read in a sentence, and the sentence. */
export function readPage(title: string): [expected: string, sentence: string][] {
  const [, ...lines] = pages.find(page => page.startsWith(`${title}\n`))!.split('\n')
  return lines.filter(Boolean).map(line => line.split(' | ', 2) as [string, string])
}
