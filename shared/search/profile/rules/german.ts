import { compileRules } from '#shared/search/profile/rules/rule.ts'

const kin =
  '(?:schwester|bruder|mutter|mama|vater|papa|frau|mann|partnerin|partner|freundin|freund|verlobte|verlobter|sohn|tochter|kind|baby|cousine|cousin|tante|onkel|nichte|neffe|oma|großmutter|opa|großvater|chefin|chef|kollegin|kollege|mitbewohnerin|mitbewohner|nachbarin|nachbar|vermieterin|vermieter|ärztin|arzt|therapeutin|therapeut|lehrerin|lehrer|hund|katze|kater|kaninchen|pferd|hamster)'
const my = '(?:mein|meine|unser|unsere)'

export const germanFacts = compileRules(kin, [
  {
    kind: 'name',
    cues: 'heiße heisse',
    pattern: 'ich hei(?:ß|ss)e (?:eigentlich |übrigens ){x}',
    subject: 'name',
    isName: true,
  },
  {
    kind: 'place',
    cues: 'leben wohnen wohne lebe',
    pattern:
      '(?:wohnen wir|leben wir|wohne ich|lebe ich) (?:[^,.;]{0,20}? )?(?:in|bei|auf|nahe) {x}',
    subject: 'home',
  },
  {
    kind: 'place',
    cues: 'ziehe ziehen',
    pattern: '(?:ich ziehe|wir ziehen) (?:[^.;]{0,30}? )?nach {x}',
    isName: true,
  },
  {
    kind: 'role',
    cues: 'arbeite',
    pattern: 'ich arbeite (?:[^,.;]{1,25}? )als {x}',
    subject: 'occupation',
  },
  {
    kind: 'role',
    cues: 'bin',
    pattern:
      'ich bin seit [^,.;]{1,25}? (?<value>[a-zß-ɏ]{3,25}(?:er|erin|in|ar|arin|ist|istin|ent|entin|schwester|eur|eurin|or|orin|arzt|ärztin)){end}',
    subject: 'occupation',
  },
  {
    kind: 'date',
    cues: 'heiraten heirate',
    pattern:
      '(?:am|im) (?<value>[0-9a-zß-ɏ. ]{2,25}?) (?:heiraten wir|heirate ich)|(?:wir heiraten|ich heirate) (?:am|im) [0-9a-zß-ɏ]',
  },
  {
    kind: 'date',
    cues: 'werde',
    pattern:
      'ich werde (?:[^.;]{0,30}? )?(?:[0-9]{2}|[a-zß-ɏ]{2,14}zig|dreißig)(?: jahre alt)?[.!]?$',
  },
  {
    kind: 'name',
    cues: 'name',
    pattern: 'mein (?:voller )?name ist {x}',
    subject: 'name',
    isName: true,
  },
  {
    kind: 'name',
    cues: 'heiße heisse',
    pattern: 'ich hei(?:ß|ss)e {x}',
    subject: 'name',
    isName: true,
  },
  {
    kind: 'name',
    cues: 'nenn nenne nennt',
    pattern: 'nenn(?:e|t)? mich (?:bitte |einfach |ab jetzt ){0,2}{x}',
    subject: 'form of address',
    isName: true,
  },
  {
    kind: 'name',
    cues: 'nennen',
    pattern: '(?:kannst|darfst|könnt) mich (?:gerne? |auch |einfach )?{x}',
    subject: 'form of address',
    isName: true,
  },
  {
    kind: 'person',
    cues: 'mein meine unser unsere',
    pattern: `${my} {kin} (?:ist|heißt|heisst) (?:herr |frau )?{x}`,
    subject: '{subject}',
    isName: true,
  },
  {
    kind: 'person',
    cues: 'mein meine unser unsere',
    pattern: `${my} {kin},? {x}`,
    subject: '{subject}',
    isName: true,
  },
  {
    kind: 'place',
    cues: 'wohne lebe wohnen leben',
    pattern:
      '(?:ich (?:wohne|lebe)|wir (?:wohnen|leben)) (?:jetzt |derzeit |inzwischen |seit [^,.;]{1,20}? )?(?:in|bei|auf|nahe) {x}',
    subject: 'home',
  },
  {
    kind: 'place',
    cues: 'komme stamme',
    pattern: 'ich (?:komme|stamme) (?:ursprünglich |eigentlich )?aus {x}',
    isName: true,
  },
  {
    kind: 'place',
    cues: 'gezogen umgezogen',
    pattern: '(?:ich bin|wir sind) (?:[^.;]{0,40}? )?nach {x}',
    subject: 'home',
    isName: true,
  },
  { kind: 'place', cues: 'aufgewachsen', pattern: 'ich bin in {x}', isName: true },
  {
    kind: 'role',
    cues: 'arbeite',
    pattern: 'ich arbeite (?:jetzt |derzeit )?als {x}',
    subject: 'occupation',
  },
  {
    kind: 'role',
    cues: 'arbeite',
    pattern: 'ich arbeite (?:jetzt |derzeit )?(?:bei|für|beim) (?!mich(?![a-z])){x}',
    subject: 'employer',
    isName: true,
  },
  {
    kind: 'role',
    cues: 'bin',
    pattern:
      'ich bin (?:jetzt |derzeit |eine? )?(?:[a-zß-ɏ]{2,20} )?(?<value>[a-zß-ɏ]{0,24}(?:lehrer|lehrerin|arzt|ärztin|pfleger|pflegerin|schwester|ingenieur|ingenieurin|entwickler|entwicklerin|student|studentin|designer|designerin|koch|köchin|bäcker|bäckerin|anwalt|anwältin|architekt|architektin|informatiker|informatikerin|handwerker|tischler|tischlerin|elektriker|mechaniker|berater|beraterin|journalist|journalistin|rentner|rentnerin|verkäufer|verkäuferin|schüler|schülerin|musiker|musikerin|professor|professorin|forscher|forscherin|selbstständig)){end}',
    subject: 'occupation',
  },
  { kind: 'role', cues: 'studiere', pattern: 'ich studiere {x}', subject: 'studies' },
  {
    kind: 'role',
    cues: 'beruf arbeitgeber',
    pattern: 'mein (?:beruf|arbeitgeber) ist {x}',
    subject: 'job',
  },
  {
    kind: 'date',
    cues: 'geburtstag',
    pattern: 'ich habe (?:am|im) (?<value>[^,;!?]{1,30}?) geburtstag',
    subject: 'birthday',
    isDate: true,
  },
  {
    kind: 'date',
    cues: 'geburtstag hochzeitstag',
    pattern: `${my} (?<subject>geburtstag|hochzeitstag) (?:ist|fällt) (?:am |auf |der |den ){0,2}(?<value>[^,;!?]{1,40})`,
    subject: '{subject}',
    isDate: true,
  },
  {
    kind: 'date',
    cues: 'geboren',
    pattern: 'ich (?:bin|wurde) (?:am |im )?(?<value>[^,;!?]{1,40}?) geboren',
    subject: 'date of birth',
    isDate: true,
  },
  {
    kind: 'date',
    cues: 'jahre',
    pattern: 'ich bin (?<value>[0-9]{1,3}) jahre alt',
    subject: 'age',
  },
  {
    kind: 'person',
    cues: 'habe haben',
    pattern:
      '(?:ich habe|wir haben) (?:eine?n?|zwei|drei|vier) (?:[a-zß-ɏ]{2,15} )?(?:kinder|kind|sohn|söhne|tochter|töchter|bruder|brüder|schwester|schwestern|geschwister){end}',
  },
])
