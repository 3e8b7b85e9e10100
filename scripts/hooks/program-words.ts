import { removeContextBlocks } from '../../shared/domain/echoes.ts'
import { readText } from '../../shared/domain/turn/text.ts'

/**
 * Leaves out of a text what a program wrote: our own block, and the marks of the table of known programs.
 *
 * @returns empty for a text that is the program's as a whole.
 */
export function wordsOf(text: string, { isModel }: { isModel: boolean }): string {
  const sent = removeContextBlocks(text)
  const { words } = readText({ text: sent, isModel, messageHolds: part => sent.includes(part) })
  return words === text ? text : words.trim()
}
