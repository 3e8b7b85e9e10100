/**
 * Blocks of Unicode that have letters of Chinese, Japanese and Korean PDFs, from and to. Their characters get the numbers
 * from 30,600 on, above those that the collections of Adobe give (30,572 at most, in Adobe-GB1-6): a font that
 * numbers by these is not understood, and never taken for another text. Those numbers are blanks.
 */
const blocks = [
  [0x20, 0x7e],
  [0xa0, 0xff],
  [0x2000, 0x206f],
  [0x2100, 0x214f],
  [0x2190, 0x21ff],
  [0x2460, 0x25ff],
  [0x3000, 0x33ff],
  [0x4e00, 0x9fff],
  [0xac00, 0xd7a3],
  [0xff00, 0xffef],
] as const
const firstNumber = 30_600
const blank = 1

type Range = { from: number; to: number; number: number }

let next = firstNumber
const ranges = blocks.map(([from, to]): Range => {
  const range = { from, to, number: next }
  next += to - from + 1
  return range
})

const numberOf = (character: number): number | undefined => {
  const range = ranges.find(({ from, to }) => character >= from && character <= to)
  return range && range.number + character - range.from
}

/** What the names of tables begin with, and the encoding of their codes. */
const encodings: readonly [RegExp, string][] = [
  [/^GB/, 'gb18030'],
  [/^(?:90ms|90msp|90pv|83pv|Add|Ext|78ms|78)-RKSJ/, 'shift_jis'],
  [/^(?:EUC|78-EUC)-/, 'euc-jp'],
  [/^(?:B5pc|ETen|ETenms|HKscs)-B5|^(?:B5pc|HKscs)/, 'big5'],
  [/^KSC/, 'euc-kr'],
]

const hex = (code: number, digits: number): string => `<${code.toString(16).padStart(digits, '0')}>`

const table = (...parts: (readonly [kind: string, lines: readonly string[]])[]): string =>
  parts
    .map(([kind, lines]) => `${lines.length} begin${kind}\n${lines.join('\n')}\nend${kind}\n`)
    .concat('endcmap\n')
    .join('')

/** Codes of one or two bytes, with what they stand for. */
function legacyTable(encoding: string): string {
  const decoder = new TextDecoder(encoding)
  const lines: string[] = []
  const add = (bytes: readonly number[], code: number): void => {
    const [character = '', ...others] = decoder.decode(Uint8Array.from(bytes))
    const number = others.length === 0 ? numberOf(character.codePointAt(0)!) : undefined
    lines.push(`${hex(code, bytes.length * 2)} ${number ?? blank}`)
  }
  const isSingle = (byte: number): boolean =>
    byte < 0x81 || (encoding === 'shift_jis' && byte >= 0xa0 && byte <= 0xdf)
  const spaces: string[] = []
  for (let first = 0; first < 0x100; first++) {
    if (isSingle(first)) add([first], first)
    else
      for (let second = 0x40; second < 0xff; second++) add([first, second], (first << 8) | second)
    spaces.push(
      isSingle(first)
        ? `${hex(first, 2)} ${hex(first, 2)}`
        : `${hex(first << 8, 4)} ${hex((first << 8) | 0xff, 4)}`,
    )
  }
  return table(['codespacerange', spaces], ['cidchar', lines])
}

const unicodeSpaces = ['<0000> <d7ff>', '<d800dc00> <dbffdfff>', '<e000> <ffff>']

/** The table of a name; undefined for one that is not known. */
function tableOf(name: string): string | undefined {
  if (/^Adobe-(?:GB1|CNS1|Japan1|Korea1)-UCS2$/.test(name))
    return table(
      ['bfchar', Array.from({ length: firstNumber - 1 }, (_, n) => `${hex(n + 1, 4)} <0020>`)],
      [
        'bfrange',
        ranges.map(
          ({ from, to, number }) =>
            `${hex(number, 4)} ${hex(number + to - from, 4)} ${hex(from, 4)}`,
        ),
      ],
    )
  if (/^Uni.*-(?:UCS2|UTF16)-/.test(name))
    return table(
      ['codespacerange', unicodeSpaces],
      ['cidrange', ranges.map(({ from, to, number }) => `${hex(from, 4)} ${hex(to, 4)} ${number}`)],
    )
  const encoding = encodings.find(([names]) => names.test(name))?.[1]
  return encoding && legacyTable(encoding)
}

/**
 * Gives pdf.js the tables of characters that PDFs name and do not contain (ISO 32000-2, 9.7.5.2): fonts that are not
 * embedded write Chinese, Japanese and Korean so. The tables of Adobe give each character a number of a collection; those here
 * only lead to Unicode, and take what Node knows of encodings.
 */
export class CharacterMaps {
  async fetch({ kind, filename }: { kind: string; filename: string }): Promise<Uint8Array> {
    const found = kind === 'cMapUrl' ? tableOf(filename) : undefined
    if (found === undefined) throw new Error(`no ${filename}`)
    return Buffer.from(found)
  }
}
