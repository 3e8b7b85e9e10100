import { readFileSync } from 'node:fs'

export type Sample = { language: string; kinds: readonly string[]; sentence: string }

/** The sentences of `profile-samples.txt`: those that the rules were made with, and those that only measure them. */
export function readSamples(): { tuned: Sample[]; heldOut: Sample[] } {
  const tuned: Sample[] = []
  const heldOut: Sample[] = []
  let language = ''
  let count = 0
  const lines = readFileSync(new URL('profile-samples.txt', import.meta.url), 'utf8').split('\n')
  for (const line of lines) {
    if (line.startsWith('== ')) [language, count] = [line.slice(3), 0]
    const [kinds, sentence] = line.split(' | ', 2)
    if (!sentence) continue
    const sample = { language, kinds: kinds === '-' ? [] : kinds!.split(','), sentence }
    ;(count++ % 2 === 0 ? tuned : heldOut).push(sample)
  }
  return { tuned, heldOut }
}
