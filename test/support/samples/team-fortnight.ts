/** One exchange of a member: what is said, when, and the facts that it holds. */
export type TeamExchange = {
  member: string
  /** Epoch milliseconds. */
  at: number
  /** The conversation it belongs to. */
  session: string
  text: string
  facts: { subject: string; value: string; tag: string | null }[]
}

type TeamMember = { name: string; roles: string[] }

/** Eight members: one of two roles, one of none, and one who may see everything. */
export const fortnightMembers: TeamMember[] = [
  { name: 'ada@example.com', roles: ['exec'] },
  { name: 'bob@example.com', roles: ['engineering'] },
  { name: 'cleo@example.com', roles: ['engineering'] },
  { name: 'dan@example.com', roles: ['finance'] },
  { name: 'eve@example.com', roles: ['people'] },
  { name: 'finn@example.com', roles: ['finance', 'people'] },
  { name: 'gus@example.com', roles: ['engineering'] },
  { name: 'hana@example.com', roles: [] },
]

/** The roles, each with the tag of its own name; `exec` allows all. */
export const fortnightRoles: Record<string, string[]> = {
  exec: ['*'],
  engineering: ['engineering'],
  finance: ['finance'],
  people: ['people'],
}

/** Twenty tags, three of them in use. */
export const fortnightTags = (
  'engineering finance people legal sales marketing security support travel office board product ' +
  'design research partners suppliers hiring press events training'
).split(' ')

const namesByTag: [string | null, string][] = [
  [
    null,
    'Atlas launch,Borealis offsite,Cedar newsletter,Delta parking,Ember kitchen,Fjord workshop,Garnet onboarding,' +
      'Harbor website,Indigo holiday,Jasper,Kestrel badge,Lumen roadmap,Mosaic lunch',
  ],
  [
    'engineering',
    'Nimbus cluster,Orchid parser,Pylon deploy,Quartz index,Raven cache,Sierra api,Tundra queue,Umber build',
  ],
  ['finance', 'Vesper invoice,Willow budget,Xenon ledger,Yarrow forecast,Zephyr audit'],
  ['people', 'Acorn interview,Birch mentor,Clover handbook,Dahlia desk,Elm rota'],
]

const subjects = namesByTag.flatMap(([tag, names]) =>
  names.split(',').map((name): [string, string | null] => [name, tag]),
)

const statements = [
  'moved to week',
  'costs so many hundred:',
  'waits for Nora, ticket',
  'belongs to group',
  'is approved as number',
  'was put off by days:',
  'goes live in sprint',
  'stands in building',
  'needs so many people:',
  'was cut to version',
  'is described on page',
  'got a new owner, desk',
]

const idle = [
  'ok',
  'Thanks!',
  'great',
  'How do I reverse a list in Python?',
  'What is the difference between a process and a thread?',
  'Explain what a closure is.',
  'Write a regular expression that matches an email address.',
  'Fix this:\n```ts\nconst total = rows.reduce((sum, row) => sum + row.size)\n```',
  'Could you make the second paragraph of that draft a little shorter and friendlier?',
  'That reads well, I would only change the order of the last two points.',
  'Can we look at the notes from this morning together?',
]

/** A generator of numbers from 0 to 1, the same on every run. */
function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

const mayKnow = ({ roles }: TeamMember, tag: string | null): boolean =>
  tag === null || roles.includes('exec') || roles.includes(tag)

/**
 * Conversations of a team of eight over two weeks, in the order of their exchanges: two to six exchanges
 * each, half a minute to a minute and a half apart, of which 45 % hold no fact. Each fact gives a subject
 * a value; three in ten repeat the value it has. Members speak about what they may see.
 */
export function teamFortnight({
  seed = 7,
  count = 200,
  start = Date.UTC(2026, 2, 2, 8),
}: { seed?: number; count?: number; start?: number } = {}): TeamExchange[] {
  const random = createRandom(seed)
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!
  const values = new Map<string, string>()
  const exchanges: TeamExchange[] = []
  const conversationMs = (14 * 24 * 3600 * 1000) / (count / 4)
  let version = 0
  const newValue = (): string => `${pick(statements)} ${++version}`
  const newFact = (member: TeamMember): TeamExchange['facts'][number] => {
    const [subject, tag] = pick(subjects.filter(([, needed]) => mayKnow(member, needed)))
    const known = values.get(subject)
    const value = known !== undefined && random() < 0.3 ? known : newValue()
    values.set(subject, value)
    return { subject, value, tag }
  }
  for (let number = 0; exchanges.length < count; number++) {
    const member = fortnightMembers[number % fortnightMembers.length]!
    const length = 2 + Math.floor(random() * 5)
    let at = Math.round(start + number * conversationMs)
    for (let turn = 0; turn < length && exchanges.length < count; turn++) {
      at += 30_000 + Math.floor(random() * 60_000)
      const said = random() < 0.45 ? 0 : random() < 0.25 ? 2 : 1
      // One exchange gives a subject one value.
      const facts = Array.from({ length: said }, () => newFact(member)).filter(
        ({ subject }, index, all) => all.findLastIndex(one => one.subject === subject) === index,
      )
      const lines = facts.map(
        ({ subject, value, tag }) => `Fact: ${subject}: ${value}${tag === null ? '' : ` #${tag}`}`,
      )
      const text = facts.length === 0 ? pick(idle) : `A short update from me.\n${lines.join('\n')}`
      exchanges.push({ member: member.name, at, session: `talk-${number}`, text, facts })
    }
  }
  return exchanges
}

/** The newest value of each subject, with who gave it and when. */
export function newestValues(
  exchanges: readonly TeamExchange[],
): Map<string, { value: string; member: string; at: number; tag: string | null }> {
  const newest = new Map<
    string,
    { value: string; member: string; at: number; tag: string | null }
  >()
  for (const { member, at, facts } of exchanges) {
    for (const { subject, value, tag } of facts) newest.set(subject, { value, member, at, tag })
  }
  return newest
}
