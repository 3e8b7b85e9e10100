/**
 * Stems of English words by Porter's second algorithm (Porter2), after a table of irregular forms:
 * the stem of "went", "going" and "goes" is "go". Texts and queries in other languages go through
 * the same rules, so equal words stay equal.
 */

const vowel = /[aeiouy]/
const doubleConsonant = /(?:bb|dd|ff|gg|mm|nn|pp|rr|tt)$/
const shortSyllable = /(?:^[aeiouy][^aeiouy]|[^aeiouy][aeiouy][^aeiouywxY])$/

/** @param word Lower case, accents folded; returned unchanged when it has other letters than a to z. */
export function stemOf(word: string): string {
  if (word.length <= 2 || !/^[a-z]+$/.test(word)) return word
  return irregular.get(word) ?? exceptions.get(word) ?? porterStem(word)
}

function porterStem(word: string): string {
  // A y that begins a syllable is a consonant; it is written as Y until the end.
  let stem = word.replace(/^y|(?<=[aeiouy])y/g, 'Y')
  const r1 = startOfR1(stem)
  const r2 = nextRegion(stem, r1)
  stem = stripPlural(stem)
  if (exceptionsAfterPlural.has(stem)) return stem
  stem = stripPastAndParticiple(stem, r1)
  stem = stem.replace(/(?<=.[^aeiouy])[yY]$/, 'i')
  stem = replaceSuffix(stem, derivationalSuffixes, r1)
  stem = replaceSuffix(stem, adjectivalSuffixes, r1)
  if (stem.endsWith('ative') && stem.length - 5 >= r2) stem = stem.slice(0, -5)
  stem = dropSuffix(stem, r2)
  return stripFinalLetter(stem, r1, r2).toLowerCase()
}

function startOfR1(word: string): number {
  const prefix = /^(?:gener|commun|arsen|past|univers|later|emerg|organ|inter)/.exec(word)
  return prefix ? prefix[0].length : nextRegion(word, 0)
}

function nextRegion(word: string, from: number): number {
  const match = /[aeiouy][^aeiouy]/.exec(word.slice(from))
  return match ? from + match.index + 2 : word.length
}

function stripPlural(word: string): string {
  if (word.endsWith('sses')) return word.slice(0, -2)
  if (/ie[ds]$/.test(word)) return word.slice(0, word.length > 4 ? -2 : -1)
  if (/(?:us|ss)$/.test(word) || !word.endsWith('s')) return word
  return vowel.test(word.slice(0, -2)) ? word.slice(0, -1) : word
}

function stripPastAndParticiple(word: string, r1: number): string {
  const eed = /eed(?:ly)?$/.exec(word)
  if (eed) return eed.index >= r1 ? `${word.slice(0, eed.index)}ee` : word
  const suffix = /(?:ed|ing)(?:ly)?$/.exec(word)
  if (!suffix || !vowel.test(word.slice(0, suffix.index))) return word
  const stem = word.slice(0, suffix.index)
  if (/(?:at|bl|iz)$/.test(stem)) return `${stem}e`
  if (doubleConsonant.test(stem) && stem.length > 3) return stem.slice(0, -1)
  return r1 >= stem.length && shortSyllable.test(stem) ? `${stem}e` : stem
}

type SuffixReplacements = readonly (readonly [suffix: string, replacement: string])[]

const derivationalSuffixes: SuffixReplacements = [
  ['ization', 'ize'],
  ['ational', 'ate'],
  ['fulness', 'ful'],
  ['ousness', 'ous'],
  ['iveness', 'ive'],
  ['tional', 'tion'],
  ['biliti', 'ble'],
  ['lessli', 'less'],
  ['entli', 'ent'],
  ['ation', 'ate'],
  ['alism', 'al'],
  ['aliti', 'al'],
  ['ousli', 'ous'],
  ['iviti', 'ive'],
  ['fulli', 'ful'],
  ['enci', 'ence'],
  ['anci', 'ance'],
  ['abli', 'able'],
  ['izer', 'ize'],
  ['ator', 'ate'],
  ['alli', 'al'],
  ['bli', 'ble'],
  ['logi', 'log'],
]

const adjectivalSuffixes: SuffixReplacements = [
  ['ational', 'ate'],
  ['tional', 'tion'],
  ['alize', 'al'],
  ['icate', 'ic'],
  ['iciti', 'ic'],
  ['ical', 'ic'],
  ['ful', ''],
  ['ness', ''],
]

function replaceSuffix(word: string, table: SuffixReplacements, r1: number): string {
  for (const [suffix, replacement] of table) {
    if (!word.endsWith(suffix)) continue
    const at = word.length - suffix.length
    return at >= r1 ? word.slice(0, at) + replacement : word
  }
  const li = table === derivationalSuffixes && /(?<=[cdeghkmnrt])li$/.exec(word)
  return li && li.index >= r1 ? word.slice(0, li.index) : word
}

const residualSuffixes =
  /(?:ement|ance|ence|able|ible|ment|ant|ent|ism|ate|iti|ous|ive|ize|(?<=[st])ion|al|er|ic)$/

function dropSuffix(word: string, r2: number): string {
  const suffix = residualSuffixes.exec(word)
  return suffix && suffix.index >= r2 ? word.slice(0, suffix.index) : word
}

function stripFinalLetter(word: string, r1: number, r2: number): string {
  const last = word.length - 1
  if (word.endsWith('e')) {
    const drops = last >= r2 || (last >= r1 && !shortSyllable.test(word.slice(0, -1)))
    return drops ? word.slice(0, -1) : word
  }
  return word.endsWith('ll') && last >= r2 ? word.slice(0, -1) : word
}

/** Words whose stems by the rules would be those of unrelated words: news, new. */
const exceptions = new Map(
  [
    'news',
    'sky',
    'howe',
    'atlas',
    'cosmos',
    'bias',
    'andes',
    'lens',
    'gas',
    'bus',
    'dying:die',
    'lying:lie',
    'tying:tie',
    'skis:ski',
    'buses:bus',
    'idly:idl',
    'gently:gentl',
    'early:earli',
    'only:onli',
    'singly:singl',
    'university:university',
    'universities:university',
    'organ:organ',
    'organs:organ',
  ].map(entry => {
    const [word = '', stem = word] = entry.split(':')
    return [word, stem] as const
  }),
)

const exceptionsAfterPlural = new Set([
  'inning',
  'outing',
  'canning',
  'herring',
  'earring',
  'proceed',
  'exceed',
  'succeed',
  'evening',
  'wedding',
  'morning',
  'building',
])

/** Each entry is a base form and its irregular or related forms. */
const irregularForms = `
be been being|go went gone|do did done|have had|see saw seen|eat ate eaten|buy bought|bring brought
think thought|teach taught|catch caught|fight fought|seek sought|sell sold|tell told|say said
get got gotten|give gave given|take took taken|make made|come came|become became|run ran|begin began begun
drink drank drunk|swim swam swum|sing sang sung|ring rang rung|sink sank sunk|spring sprang sprung
know knew known|grow grew grown|throw threw thrown|fly flew flown|draw drew drawn|blow blew blown
write wrote written|drive drove driven|ride rode ridden|rise risen|choose chose chosen
speak spoke spoken|break broke broken|steal stole stolen|freeze froze frozen|wake woke woken
wear wore worn|tear tore torn|swear swore sworn|bear bore borne|birth born|bite bit bitten|hide hid hidden
forget forgot forgotten|fall fell fallen|feel felt|keep kept|sleep slept|weep wept|sweep swept
leave left|meet met|feed fed|lead led|bleed bled|breed bred|speed sped|send sent|spend spent
lend lent|bend bent|build built|burn burnt|learn learnt|dream dreamt|spell spelt|spill spilt|spoil spoilt
lose lost|shoot shot|sit sat|stand stood|understand understood|win won|hold held|hang hung|stick stuck
strike struck|dig dug|swing swung|spin spun|find found|bind bound|hear heard
pay paid|lay laid|lie lain|mean meant|deal dealt|kneel knelt|creep crept|leap leapt|show shown|sew sewn
shake shook shaken|mistake mistook mistaken|forgive forgave forgiven|drive drove driven|shine shone
slide slid|light lit|quit quitted|shut shutting|put putting|cut cutting|hit hitting|let letting|set setting
withdraw withdrew withdrawn|overcome overcame|undergo underwent undergone|foresee foresaw foreseen
child children|man men|woman women|person people|foot feet|tooth teeth|goose geese|mouse mice|wife wives
life lives|knife knives|leaf leaves|half halves|shelf shelves|wolf wolves|thief thieves|loaf loaves
calf calves|scarf scarves|good better best|bad worse worst|far further furthest|analysis analyses
crisis crises|gas gases|diagnosis diagnoses|criterion criteria|phenomenon phenomena|medium media|datum data
marry marriage married|die death dead died|choose choice|sell sale|lose loss|fly flight
live alive|advise advice|believe belief|grow growth|give gift|weigh weight|think thought|proud pride
injure injury|deliver delivery|discover discovery|recover recovery|succeed success successful
arrive arrival|refuse refusal|propose proposal|renew renewal|approve approval|survive survival
decide decision|divide division|explode explosion|invade invasion|permit permission|admit admission
solve solution|describe description|subscribe subscription|prescribe prescription|destroy destruction
receive receipt|suspect suspicion|strong strength|long length|wide width|deep depth|high height|hot heat
warm warmth|young youth|true truth|heal health|bored boredom|wise wisdom
allergy allergic allergies allergen|athlete athletic|photograph photo photography photographer
vegetarian veggie|vaccine vaccinate vaccination|volunteer voluntary|surgery surgical|technique technical
diagnose diagnosis diagnostic|hospital hospitalize|therapy therapist therapeutic|music musician musical
science scientist scientific|physics physicist|paint painter painting|bake baker bakery|cook cooking
compete competition competitor|graduate graduation|celebrate celebration|invite invitation|relate relation
apologize apology|memory memorize memorable|anxiety anxious|hunger hungry|thirst thirsty|anger angry
noise noisy|rain rainy|sun sunny|snow snowy|cloud cloudy|wind windy|fun funny|salt salty|spice spicy
france french|germany german|spain spanish|italy italian|japan japanese|china chinese|portugal portuguese
norway norwegian|sweden swedish|denmark danish|netherlands dutch holland|greece greek|turkey turkish
poland polish|russia russian|brazil brazilian|mexico mexican|india indian|korea korean|thailand thai
vietnam vietnamese|england english|ireland irish|scotland scottish|canada canadian|america american
australia australian|africa african|europe european|asia asian|switzerland swiss|austria austrian
`

const irregular = new Map<string, string>()
for (const entry of irregularForms.trim().split(/[|\n]/)) {
  const [base = '', ...others] = entry.trim().split(' ')
  const stem = porterStem(base)
  // The first entry that names a form wins: "found" is of find, not of founding.
  for (const form of others) if (!irregular.has(form)) irregular.set(form, stem)
}
