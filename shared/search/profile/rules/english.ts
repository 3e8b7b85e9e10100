import { compileRules, type RuleRow } from '#shared/search/profile/rules/rule.ts'

const kin =
  '(?:(?:older|younger|little|big|eldest|oldest|youngest|best|twin|late|step|half)[- ]?)?(?:sister|brother|mother|mom|mum|father|dad|wife|husband|partner|spouse|fiancée|fiancee|fiancé|fiance|girlfriend|boyfriend|son|daughter|child|baby|cousin|aunt|uncle|niece|nephew|grandmother|grandma|granny|grandfather|grandpa|boss|manager|supervisor|colleague|coworker|co-worker|assistant|friend|roommate|flatmate|housemate|neighbour|neighbor|landlord|landlady|therapist|doctor|dentist|teacher|coach|dog|cat|puppy|kitten|rabbit|parrot|hamster|horse|pony)'

/** First persons with `am`; `I` with adverbs between. */
const am = "(?:i'm|im|i am|we're|we are)(?: (?:now|currently|originally|still|actually|both|also))?"
const i =
  "(?:i|we)(?:'ve| have)?(?: (?:now|currently|just|recently|still|both|also|really|finally|usually|mostly|always|actually))?"

const names: RuleRow[] = [
  {
    kind: 'name',
    cues: 'name',
    pattern: "my (?:full |real |first |given )?name(?:'s| is) {x}",
    subject: 'name',
    isName: true,
  },
  {
    kind: 'name',
    cues: 'name surname',
    pattern: "my (?:last name|family name|surname|middle name|nickname)(?:'s| is) {x}",
    isName: true,
  },
  {
    kind: 'name',
    cues: 'call calls',
    pattern: '(?:call me|calls me) {x}',
    subject: 'form of address',
    isName: true,
  },
  { kind: 'name', cues: 'go', pattern: 'i go by {x}', subject: 'form of address', isName: true },
  { kind: 'name', cues: 'called', pattern: `${am} called {x}`, subject: 'name', isName: true },
  {
    kind: 'name',
    cues: 'hi hello hey',
    pattern: "^(?:hi|hello|hey)(?: there| everyone| all)?[,!. ]{1,3}(?:i'm|i am) {x}",
    subject: 'name',
    isName: true,
  },
]

const people: RuleRow[] = [
  {
    kind: 'person',
    cues: 'my our',
    pattern: "(?:my|our) {kin}(?:'s name)?(?:'s| is)(?: called| named)? {x}",
    subject: '{subject}',
    isName: true,
  },
  {
    kind: 'person',
    cues: 'my our',
    pattern: '(?:my|our) {kin},? {x}',
    subject: '{subject}',
    isName: true,
  },
  {
    kind: 'person',
    cues: 'my our',
    pattern: "^(?<value>[a-zß-ɏ][a-zß-ɏ'. -]{0,40}?) is (?:my|our) {kin}{end}",
    subject: '{subject}',
    isName: true,
  },
  {
    kind: 'person',
    cues: 'have kids',
    pattern:
      '(?:i|we) have (?:an?|one|two|three|four|five|\\d{1,2}|no) (?:(?:small|young|grown|little|older|younger|twin|adult|teenage)[ -]){0,2}(?:kids?|children|child|sons?|daughters?|brothers?|sisters?|siblings|twins|grandchildren|grandkids){end}',
  },
  {
    kind: 'person',
    cues: 'married engaged',
    pattern: `${am} (?:married|engaged) to {x}`,
    subject: 'spouse',
    isName: true,
  },
]

const places: RuleRow[] = [
  { kind: 'place', cues: 'moving', pattern: `${am} moving (?:back )?to {x}`, isName: true },
  {
    kind: 'place',
    cues: 'live living lived reside',
    pattern: `(?:${i} (?:live|reside)|${am} living|(?:i|we)(?:'ve| have) (?:been living|lived)) (?:with [^,.;]{1,30}? )?(?:in|at|near|outside|on) {x}`,
    subject: 'home',
  },
  {
    kind: 'place',
    cues: 'home house flat apartment',
    pattern: 'my (?:home|house|flat|apartment) is (?:in|at|near|outside|on) {x}',
    subject: 'home',
  },
  {
    kind: 'place',
    cues: 'based settled',
    pattern: `${am} (?:based|settled) in {x}`,
    subject: 'home',
  },
  {
    kind: 'place',
    cues: 'moved relocated',
    pattern: `${i} (?:moved|relocated) (?:(?:back|over|from [^,.;]{1,40}?|in with [^,.;]{1,30}?) )?(?:to|into) {x}`,
    subject: 'home',
  },
  { kind: 'place', cues: 'from', pattern: `${am} from {x}`, isName: true },
  {
    kind: 'place',
    cues: 'grew raised born',
    pattern: '(?:i|we) (?:grew up|(?:was|were) raised|(?:was|were) born) in (?!\\d){x}',
  },
  {
    kind: 'place',
    cues: 'address hometown town',
    pattern: "(?:my|our) (?:new |home |current )?(?:address|hometown|home town)(?:'s| is) {x}",
    subject: 'address',
  },
]

const professions =
  'accountant|actor|actress|architect|artist|author|baker|barber|barista|biologist|builder|carpenter|chef|chemist|coach|composer|consultant|cook|counsellor|dentist|designer|developer|director|doctor|driver|economist|editor|electrician|engineer|entrepreneur|farmer|filmmaker|firefighter|florist|freelancer|gardener|gp|graphic designer|hairdresser|head|historian|illustrator|intern|journalist|judge|lawyer|lecturer|librarian|machinist|manager|mechanic|midwife|musician|nanny|novelist|nurse|optician|painter|paramedic|pharmacist|photographer|physician|physicist|physiotherapist|pilot|plumber|podcaster|police officer|postdoc|principal|producer|professor|programmer|psychologist|researcher|sailor|scientist|secretary|singer|social worker|soldier|sommelier|student|surgeon|tailor|teacher|technician|therapist|translator|tutor|vet|veterinarian|waiter|waitress|welder|writer'

const roles: RuleRow[] = [
  {
    kind: 'role',
    cues: 'job work position role',
    pattern: 'my (?:job|work|position|role) as (?:an? |the )?{x}',
    subject: 'occupation',
  },
  {
    kind: 'role',
    cues: 'work working',
    pattern: `(?:${i} work|${am} working|(?:i've|i have) worked)(?: [^,.;]{1,25}?)? as (?:an? |the )?{x}`,
    subject: 'occupation',
  },
  {
    kind: 'role',
    cues: 'work working',
    pattern: `(?:${i} work|${am} working) (?:as [^,.;]{1,40}? |(?:remotely|part-time|full-time|freelance|mostly|mainly|from home|nights|days) ){0,2}(?:at|for) (?!(?:home|night|nights|the moment|least|now|me|myself|once|it|this|that)(?![a-zß-ɏ]))(?:the |an? )?{x}`,
    subject: 'employer',
  },
  {
    kind: 'role',
    cues: 'i im m am',
    pattern: `(?:${am}|i've been|i have been|i became) (?:an? |the )(?<value>(?:[a-zß-ɏ-]{1,20} ){0,3}(?:${professions})){end}`,
    subject: 'occupation',
  },
  {
    kind: 'role',
    cues: 'retired unemployed freelance',
    pattern: `${am} (?<value>retired|unemployed|self-employed|freelance|freelancing){end}`,
    subject: 'occupation',
  },
  {
    kind: 'role',
    cues: 'job profession occupation employer company position title',
    pattern:
      "my (?:new |current |day )?(?:job|job title|title|profession|occupation|employer|company|position)(?:'s| is) {x}",
    subject: 'job',
  },
  {
    kind: 'role',
    cues: 'job position role',
    pattern: `${i} (?:got|started|took|accepted|landed|have) (?:an?|my) (?:new )?(?:job|position|role) (?:as|at|with) (?:an? |the )?{x}`,
    subject: 'job',
  },
  { kind: 'role', cues: 'joined', pattern: `${i} joined {x}`, subject: 'employer', isName: true },
  {
    kind: 'role',
    cues: 'study studying',
    pattern: `(?:${i} study|${am} studying) (?!for){x}`,
    subject: 'studies',
  },
  {
    kind: 'role',
    cues: 'run own founded started teach',
    pattern: `${i} (?:run|own|founded|started) (?:an?|my own|our own) (?<value>(?:[a-zß-ɏ-]{1,20} ){0,2}(?:company|business|bakery|shop|store|café|cafe|restaurant|startup|agency|farm|studio|practice|salon|bar|hotel|gallery|clinic|workshop)){end}`,
  },
  { kind: 'role', cues: 'teach', pattern: `${i} teach {x}` },
]

const dates: RuleRow[] = [
  {
    kind: 'date',
    cues: 'getting turning',
    pattern: `${am} (?:getting married|turning [0-9]{1,3}) (?:on|in)(?: the)? {x}`,
    isDate: true,
  },
  {
    kind: 'date',
    cues: 'turned turn',
    pattern: 'i (?:just |recently )?turn(?:ed)? (?<value>[0-9]{1,3}){end}',
    subject: 'age',
  },
  {
    kind: 'date',
    cues: 'birthday anniversary wedding bday',
    pattern: `(?:my|our) (?<subject>(?:${kin}'s )?(?:wedding )?(?:birthday|bday|b-day|anniversary|wedding|due date))(?:'s| is| falls| was)(?: on| in)?(?: the)? {x}`,
    subject: '{subject}',
    isDate: true,
  },
  {
    kind: 'date',
    cues: 'birthday anniversary',
    pattern:
      "(?<subject>[a-zß-ɏ-]{1,20}'s (?:birthday|anniversary))(?:'s| is| falls)(?: on| in)?(?: the)? {x}",
    subject: '{subject}',
    isDate: true,
  },
  {
    kind: 'date',
    cues: 'born',
    pattern: 'i was born (?:on|in)(?: the)? {x}',
    subject: 'date of birth',
    isDate: true,
  },
  {
    kind: 'date',
    cues: 'years year',
    pattern: `(?:i'm|im|i am) (?<value>\\d{1,3})[ -]years?[ -]old`,
    subject: 'age',
  },
  {
    kind: 'date',
    cues: 'married',
    pattern: `${i} (?:got|were) married (?:on|in)(?: the)? {x}`,
    subject: 'wedding',
    isDate: true,
  },
]

export const englishFacts = compileRules(kin, [...names, ...people, ...places, ...roles, ...dates])
