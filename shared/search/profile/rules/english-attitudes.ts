import { compileRules, type RuleRow } from '#shared/search/profile/rules/rule.ts'

const i =
  '(?:i|we)(?: (?:now|still|really|absolutely|just|usually|mostly|generally|always|also|particularly|kind of))?'
const am = "(?:i'm|im|i am|we're|we are)(?: (?:now|currently|still|very|severely|also|a|an))?"
/** What is liked at this moment says nothing that lasts. */
const lasting =
  '(?!(?:it|this|that|these|those|you|your|how|what|when|the (?:idea|way|first|second|last|one|look)|him|her|them|to (?:see|hear|know|think|say|hear|ask))(?![a-zß-ɏ]))'

const preferences: RuleRow[] = [
  {
    kind: 'preference',
    cues: 'fan',
    pattern:
      "(?:i'm|im|i am|we're|we are|i've (?:always|never) been) (?:not )?(?:really )?(?:an? )?(?:big |huge |great |real )?fan of [a-zß-ɏ]",
  },
  {
    kind: 'preference',
    cues: 'go usual preferred',
    pattern: 'my (?<subject>(?:go-to|usual|preferred) (?:[a-zß-ɏ-]{1,20} ?){1,3}?)(?: is| are) {x}',
    subject: '{subject}',
  },
  {
    kind: 'preference',
    cues: 'prefer',
    pattern: `${i} (?:would )?(?:strongly |much )?prefer ${lasting}{x}`,
  },
  {
    kind: 'preference',
    cues: 'prefer',
    pattern: `${i} prefer (?<value>[a-zß-ɏ -]{2,30}?) (?:over|to) (?<other>[a-zß-ɏ -]{2,30})`,
    subject: 'choice of {pair}',
  },
  {
    kind: 'preference',
    cues: 'prefer',
    pattern: `${i} prefer (?<value>[a-zß-ɏ-]{2,20} (?<subject>[a-zß-ɏ-]{3,20}))(?: now)?[.!\\s]{0,3}$`,
    subject: 'kind of {subject}',
  },
  {
    kind: 'preference',
    cues: 'rather',
    pattern: "(?:i'd|we'd|i would|we would) rather (?!not )[a-zß-ɏ]",
  },
  {
    kind: 'preference',
    cues: 'favourite favorite',
    pattern:
      "(?:my|our) (?<subject>(?:all-time )?(?:favourite|favorite) (?:[a-zß-ɏ-]{1,20} ?){1,3}?)(?:'s| is| are| has always been| was always) {x}",
    subject: '{subject}',
  },
  {
    kind: 'preference',
    cues: 'allergic intolerant intolerance allergy',
    pattern: `(?:${am} (?:allergic to|intolerant to|[a-zß-ɏ]{1,20}[ -]intolerant)|i have an? [^,.;]{1,30}?(?:allergy|intolerance))`,
  },
  {
    kind: 'preference',
    cues: 'vegetarian vegan pescatarian teetotal kosher halal pescetarian teetotaler',
    pattern: `${am} (?:strict )?(?<value>vegetarian|vegan|pescatarian|pescetarian|teetotal(?:er)?){end}|${i} (?:eat|keep) (?:kosher|halal)`,
    subject: 'diet',
  },
  {
    kind: 'preference',
    cues: 'eat drink wear watch use take',
    pattern:
      "(?:i|we) (?:don't|do not|never|can't|cannot) (?:eat|drink|wear|watch|use|take) (?!(?:it|this|that|them|you|any)(?![a-zß-ɏ]))(?:[a-zß-ɏ])",
  },
  {
    kind: 'preference',
    cues: 'always never',
    pattern:
      '(?:i|we) (?:always|never) (?!(?:said|did|thought|knew|got|had|was|were|been|forget|know|say|asked|wanted|meant|tried|understood|feel|seem)(?![a-zß-ɏ]))(?![a-zß-ɏ]{2,20}ed )[a-zß-ɏ]',
  },
  {
    kind: 'preference',
    cues: 'love like enjoy adore',
    pattern: `${i} (?:love|like|enjoy|adore) ${lasting}{x}`,
    subject: 'opinion of {value}',
    value: '+',
  },
  {
    kind: 'preference',
    cues: 'hate dislike detest loathe',
    pattern: `${i} (?:hate|dislike|detest|loathe) ${lasting}{x}`,
    subject: 'opinion of {value}',
    value: '-',
  },
  {
    kind: 'preference',
    cues: 'stand bear like',
    pattern: `(?:i|we) (?:can't stand|cannot stand|can't bear|don't like|do not like|don't enjoy) ${lasting}{x}`,
    subject: 'opinion of {value}',
    value: '-',
  },
]

const polite =
  "(?:(?:please|and|but|also|ok|okay|so|then|just|remember to|make sure to|be sure to|you should|you must|you need to|i want you to|i need you to|i'd like you to|i would like you to|i expect you to),? ){0,3}"

const instructions: RuleRow[] = [
  {
    kind: 'instruction',
    cues: 'ever again anymore when whenever answers replies messages emails code',
    pattern: `^${polite}(?:don't|do not) [a-zß-ɏ]{2,20} [^.;]{1,80}(?<![a-zß-ɏ])(?:ever|again|anymore|when you|whenever|in (?:your|my|the|any) (?:answers?|replies|messages?|emails?|code)){end}`,
  },
  {
    kind: 'instruction',
    cues: 'now forward today future henceforth onwards',
    pattern:
      '(?:from now on|from here on|from today on|from this point on|going forward|starting (?:now|today)|henceforth|in (?:the )?future,|for (?:all |any )?future (?:answers|replies|responses|conversations|messages|emails|questions|requests))',
  },
  {
    kind: 'instruction',
    cues: 'always never ever',
    pattern: `^${polite}(?:always|never|don't ever|do not ever) (?!(?:mind|again|an?|the|been|said|had|knew|in|been|really|quite|too|sunny|happy)(?![a-zß-ɏ]))[a-zß-ɏ]`,
  },
  { kind: 'instruction', cues: 'always', pattern: `^please [^,.;]{1,60} always{end}` },
  {
    kind: 'instruction',
    cues: 'stop',
    pattern: `^${polite}stop (?:using|calling|suggesting|sending|asking|adding|mentioning|apologi[sz]ing|recommending|saying|giving|telling|being|repeating|including|putting|ending|starting)`,
  },
  {
    kind: 'instruction',
    cues: 'whenever time when',
    pattern: `^${polite}(?:whenever|every time|each time|any time|when) (?:i|you|we)(?:'re| are)? [^,.;]{2,100}, (?:please |always |then |just )?(?!(?:i|i'm|i'll|i'd|we|it|it's|my|our|the|he|she|they|there|you)(?![a-zß-ɏ]))[a-zß-ɏ]`,
  },
  {
    kind: 'instruction',
    cues: 'remember mind note forget',
    pattern: `^${polite}(?:remember|keep in mind|bear in mind|don't forget|do not forget)(?: that|:|,)? (?:i|i'm|my|we|our|to)(?![a-zß-ɏ])`,
  },
  {
    kind: 'instruction',
    cues: 'default rule',
    pattern: '^(?:by default|as a rule),? (?!(?:i|the|it|this)(?![a-zß-ɏ]))[a-zß-ɏ]',
  },
]

const things =
  'car|van|truck|bike|bicycle|motorbike|motorcycle|scooter|boat|caravan|camper|house|flat|apartment|cottage|cabin|garden|allotment|farm|dog|cat|puppy|kitten|rabbit|hamster|parrot|horse|pony|chickens|goldfish|retriever|labrador|poodle|beagle|terrier|shepherd|collie|dachshund|guitar|piano|violin|cello|drum kit|keyboard|camera|laptop|computer|macbook|ipad|tablet|iphone|phone|telescope|greenhouse|vineyard|sailboat|dogs|cats|cars|bikes|horses'

const possessions: RuleRow[] = [
  {
    kind: 'possession',
    cues: 'drive ride',
    pattern: `${i} (?:drive|ride) (?:an?|the) {x}`,
    subject: 'car',
  },
  {
    kind: 'possession',
    cues: 'own',
    pattern: `${i} own (?:an?|the|two|three|my|our|some|several) {x}`,
  },
  {
    kind: 'possession',
    cues: 'have ve got bought adopted',
    pattern: `(?:i|we)(?:'ve| have)?(?: just| recently| finally| also)?(?: have| got| bought| adopted)? (?:an?|one|two|three|four|\\d{1,2}|my own|our own) (?:[a-zß-ɏ-]{1,20} ){0,3}?(?:${things}){end}`,
  },
  {
    kind: 'possession',
    cues: 'car bike motorbike phone laptop computer camera guitar boat',
    pattern:
      "my (?:new |old )?(?<subject>car|bike|motorbike|phone|laptop|computer|camera|guitar|boat)(?:'s| is) (?:an?|the) (?!(?:mess|problem|pain|disaster|wreck|nightmare|bit|lot|little)(?![a-zß-ɏ])){x}",
    subject: '{subject}',
  },
]

const changes: RuleRow[] = [
  {
    kind: 'change',
    cues: 'left',
    pattern: "(?:i|we)(?:'ve| have)?(?: just| recently| finally)? left {x}",
    isName: true,
  },
  {
    kind: 'change',
    cues: 'sold',
    pattern:
      "(?:i|we)(?:'ve| have)?(?: just| recently| finally)? (?:sold|got rid of) (?:my|our)(?![a-z])",
  },
  {
    kind: 'change',
    cues: 'from',
    pattern:
      '(?:i|we|my|our|the|he|she|they)(?![a-zß-ɏ])[^.;]{0,60}?(?<![a-zß-ɏ])(?:changed|switched|moved|relocated|migrated|went|swapped|renamed|rescheduled|postponed|pushed|increased|raised|reduced|upgraded|converted|transferred) (?:[^.;]{0,50}? )?from [^.;]{1,60}? to (?!worse)[a-zß-ɏ0-9]',
  },
  {
    kind: 'change',
    cues: 'longer',
    pattern: "(?:i|i'm|we|we're|my|our)(?![a-zß-ɏ])[^.;]{0,40} no longer{end}",
  },
  {
    kind: 'change',
    cues: 'more anymore longer',
    pattern:
      "(?:i|i'm|we|we're|my|our)(?![a-zß-ɏ])[^.;]{0,30}(?:not|n't)(?! know) [^.;]{1,60} (?:anymore|any longer|any more(?! than))",
  },
  {
    kind: 'change',
    cues: 'used',
    pattern: '(?:i|we) used to (?!(?:it|this|that|the)(?![a-zß-ɏ]))[a-zß-ɏ]',
  },
  {
    kind: 'change',
    cues: 'quit left gave given stopped switched',
    pattern: `(?:i|we)(?:'ve| have)?(?: just| recently| finally)? (?:quit{end}|left my job|gave up|given up|stopped (?=[a-zß-ɏ]{2,20}ing)|switched to)`,
  },
  {
    kind: 'change',
    cues: 'married divorced engaged broke split separated baby',
    pattern: `(?:i|we)(?:'ve| have)?(?: just| recently| finally)? (?:got (?:divorced|engaged)|broke up|split up|separated|had a baby){end}`,
  },
  {
    kind: 'change',
    cues: 'longer anymore more',
    pattern: "(?:i|we) (?:no longer|don't|do not) work (?:at|for) (?:the )?{x}",
    ends: { kind: 'role', subject: 'employer' },
  },
  {
    kind: 'change',
    cues: 'longer anymore more',
    pattern: "(?:i|we) (?:no longer|don't|do not) live (?:in|at|near) {x}",
    ends: { kind: 'place', subject: 'home' },
  },
  {
    kind: 'change',
    cues: 'longer anymore more',
    pattern: "(?:i'm|i am) (?:no longer|not) (?:an? )?(?<value>vegetarian|vegan|pescatarian){end}",
    ends: { kind: 'preference', subject: 'diet' },
  },
  {
    kind: 'change',
    cues: 'longer anymore more stopped',
    pattern:
      "(?:i|we) (?:no longer (?:like|love|enjoy|prefer)|(?:don't|do not) (?:like|love|enjoy)|stopped liking) {x}",
    ends: { kind: 'preference', subject: 'opinion of {value}' },
  },
]

export const englishAttitudes = compileRules('', [
  ...preferences,
  ...instructions,
  ...possessions,
  ...changes,
])
