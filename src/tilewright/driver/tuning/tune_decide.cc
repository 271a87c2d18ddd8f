// What becomes of what the search has found: every kernel's best schedules run against each other
// (final_race.h), then whole models do. First convolutions in other forms: those at least 3 %
// faster in the model, or by their kernels where devices of a fleet measure, are taken together if
// the model gains 1 %. Then the tuned model against the untuned one; kernels that are no faster
// inside it go back to the rules' schedules, and all of them do if the model loses. Verdicts go to
// the store, the winner into the package.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "tilewright/base/process.h"
#include "tilewright/driver/console.h"
#include "tilewright/driver/inputs/samples.h"
#include "tilewright/driver/tuning/tune_run.h"
#include "tilewright/driver/tuning/tuned.h"
#include "tilewright/records/workload.h"

namespace tilewright::driver {
namespace {

/// Of the time of the rules' algorithm, for a convolution and for its model.
constexpr double kFormWins = 0.97, kModelWins = 0.99;

}  // namespace

Status TuneRun::decide() {
  // An interrupted run writes what it has; interrupting again ends that too.
  if (interrupted()) interrupt_requested = false;
  measure::Measurer* racer = interrupted() ? nullptr : measurer_.get();
  // Replayed readings are as old as they are, so that equal runs give equal packages.
  const std::string when = on_device() ? tune::utc_now() : newest_;
  verdicts_ = final_races(
      *tuner_, compiler_key(), when, racer, [&] { return rest() > 0; }, target().simulated);
  gains_.clear();
  for (TunedModel& model : plan_.models) {
    TW_TRY_STATUS(choose_forms(model));
    TW_TRY_STATUS(target().cost != nullptr ? compare_launches(model) : compare(model));
  }
  const Status written = write_package();
  if (kept_) {
    // What an interrupted run saw was not raced: it stands as readings.
    std::vector<records::Record> records;
    for (const Verdict& verdict : verdicts_)
      if (verdict.known && !interrupted()) records.push_back(verdict.record);
    if (!interrupted())
      for (records::Record& record : decided_forms()) records.push_back(std::move(record));
    TW_TRY_STATUS(keep_verdicts(*kept_, records, interrupted()));
  }
  return written;
}

Verdict* TuneRun::verdict_of(const compile::KernelReport& kernel) {
  const std::string key = records::workload_key(records::workload_text(kernel.func));
  for (Verdict& verdict : verdicts_)
    if (verdict.known && verdict.record.workload == key) return &verdict;
  return nullptr;
}

/// Compiling and racing a model, for its forms: each of them, what is best of all, and the usual
/// one. Devices of a fleet run no forms, but kernels, whose times are added up.
double TuneRun::form_turns(const TunedModel& model) const {
  if (model.others.empty()) return 0;
  return 2 + (remote_ ? 0 : static_cast<double>(model.others.size()));
}

/// Which convolutions take another algorithm than by rule, all kernels being tuned: those that are
/// faster inside the model, if the model with them is faster as a whole.
Status TuneRun::choose_forms(TunedModel& model) {
  if (model.others.empty() || !(model.session || remote_) || interrupted()) return {};
  const double turn = model.compile_seconds + race_seconds();
  if (!time_for((1 + form_turns(model)) * turn)) return {};
  std::unique_ptr<runtime::Session> usual;
  if (!remote_) usual = TW_TRY(open_tuned(model, {}));
  const OpenForms best = remote_ ? add_up_forms(model) : TW_TRY(run_forms(model, *usual));
  std::vector<records::Record> taken;
  for (const auto& [conv, form] : best)
    if (form.first < kFormWins) taken.push_back(form.second);
  if (!taken.empty() && TW_TRY(mixed_share(model, taken, usual.get())) < kModelWins)
    model.forms = taken;
  model.tuned.reset();
  return {};
}

namespace {

void keep_better(std::map<std::string, std::pair<double, records::Record>>& best,
                 const ConvForms& conv, records::Record form) {
  form.cost = form.least = conv.after;
  const std::pair found(conv.after / conv.before, form);
  auto& known = best.emplace(form.workload, found).first->second;
  if (found.first < known.first) known = found;
}

}  // namespace

/// By steps of the whole model in each form, in turn with the usual one.
Result<TuneRun::OpenForms> TuneRun::run_forms(TunedModel& model, runtime::Session& usual) {
  OpenForms best;
  for (OtherForms& forms : model.others) {
    std::vector<records::Record> all;
    for (const ConvForms& conv : forms.convs)
      all.push_back(form_record(conv.conv, conv.other, compile_, 0));
    const auto other = TW_TRY(open_tuned(model, all));
    const Duel times = TW_TRY(race(usual, *other));
    for (size_t i = 0; i < all.size(); ++i) {
      ConvForms& conv = forms.convs[i];
      conv.before = time_of(conv, times.steps_before);
      conv.after = time_of(conv, times.steps_after);
      keep_better(best, conv, all[i]);
    }
  }
  return best;
}

/// By what the kernels of each form were measured to take, where all of them were.
TuneRun::OpenForms TuneRun::add_up_forms(TunedModel& model) {
  OpenForms best;
  for (OtherForms& forms : model.others)
    for (ConvForms& conv : forms.convs) {
      const double before = measured_time(conv, model.compiled);
      const double after = measured_time(conv, forms.compiled);
      if (before == 0 || after == 0) continue;
      conv.before = before, conv.after = after;
      keep_better(best, conv, form_record(conv.conv, conv.other, compile_, 0));
    }
  return best;
}

/// Of a convolution, the sum of its kernels' times; 0 if one of them was not measured.
double TuneRun::measured_time(const ConvForms& conv, const compile::CompiledModel& model) {
  std::map<std::string, double> steps;
  for (const compile::KernelReport* kernel : compile::all_kernels(model)) {
    const Verdict* verdict = verdict_of(*kernel);
    for (const std::string& step : kernel->steps) {
      if (verdict == nullptr && time_of(conv, {{step, 1}}) > 0) return 0;
      if (verdict != nullptr) steps[step] = verdict->record.cost;
    }
  }
  return time_of(conv, steps);
}

/// The time of the model with these forms as a share of its usual one. `usual`: null for devices of
/// a fleet; where these cannot say, it is 1.
Result<double> TuneRun::mixed_share(TunedModel& model, const std::vector<records::Record>& taken,
                                    runtime::Session* usual) {
  if (usual != nullptr) {
    const auto mixed = TW_TRY(open_tuned(model, taken));
    const Duel whole = TW_TRY(race(*usual, *mixed));
    return whole.after / whole.before;
  }
  const compile::CompiledModel before = TW_TRY(compile_subject(model.subject, with_verdicts({})));
  const compile::CompiledModel after = TW_TRY(compile_subject(model.subject, with_verdicts(taken)));
  const Result<Duel> whole = duel_there(model.subject, before, after);
  if (whole) return whole->after / whole->before;
  if (whole.error().kind == ErrorKind::Interrupted) return tl::unexpected<Error>(whole.error());
  say(fmt::format("warning: other forms of convolutions could not be compared: {}",
                  whole.error().what));
  return 1;
}

compile::CompileOptions TuneRun::with_verdicts(const std::vector<records::Record>& forms) const {
  compile::CompileOptions options = compile_;
  options.tuned = find_among(verdicts_);
  if (!forms.empty()) options.form = find_form(forms);
  return options;
}

/// `model` with the present verdicts and `forms`.
Result<std::unique_ptr<runtime::Session>> TuneRun::open_tuned(
    TunedModel& model, const std::vector<records::Record>& forms) {
  model.tuned = TW_TRY(compile_subject(model.subject, with_verdicts(forms)));
  runtime::SessionOptions session_options;
  session_options.threads = threads_of(settings_.subject);
  session_options.flush_denormals = true;
  return compile::open_session(*model.tuned, session_options);
}

Result<Duel> TuneRun::race(runtime::Session& before, runtime::Session& after) const {
  return duel(before, after, settings_.subject.seed, duel_seconds());
}

/// The model as compiled by rule against its form with the present verdicts.
Result<Duel> TuneRun::race_tuned(TunedModel& model) {
  if (remote_) {
    model.tuned = TW_TRY(compile_subject(model.subject, with_verdicts(model.forms)));
    return duel_there(model.subject, model.compiled, *model.tuned);
  }
  if (target().duel != nullptr) {
    model.tuned = TW_TRY(compile_subject(model.subject, with_verdicts({})));
    return target().duel(model.compiled, *model.tuned, settings_.subject, duel_seconds());
  }
  const auto session = TW_TRY(open_tuned(model, model.forms));
  return race(*model.session, *session);
}

/// The tuned model against the untuned one. Kernels that are no faster inside the model, and all
/// where it loses as a whole, keep the rules' schedules.
Status TuneRun::compare(TunedModel& model) {
  ModelGain gain;
  gain.name = model.subject.name;
  bool any = !model.forms.empty();
  for (const compile::KernelReport* report : compile::all_kernels(model.compiled)) {
    const compile::KernelReport& kernel = *report;
    const Verdict* verdict = verdict_of(kernel);
    if (verdict == nullptr) continue;
    const auto uses = static_cast<double>(kernel.steps.size());
    any |= verdict->better;
    gain.before += uses * verdict->rule_cost;
    gain.after += uses * verdict->record.cost;
  }
  if (model.latency > 0 && !any) gain.before = gain.after = model.latency;
  const double turn = model.compile_seconds + race_seconds();
  if (!(runs_here() || remote_) || !any || interrupted() || !time_for(turn)) {
    gains_.push_back(std::move(gain));
    return {};
  }
  Result<Duel> raced = race_tuned(model);
  if (!raced && remote_ && raced.error().kind != ErrorKind::Interrupted) {
    say(fmt::format("warning: {} as a whole could not be measured: {}", gain.name,
                    raced.error().what));
    gains_.push_back(std::move(gain));
    return {};
  }
  Duel times = TW_TRY(std::move(raced));
  if (give_up_slower(model, times) && (time_for(turn) || times.after >= times.before))
    times = TW_TRY(race_tuned(model));
  gain.raced = true;
  gain.before = times.before;
  gain.after = gain.in_race = times.after;
  if (times.after >= times.before) {
    gain.after = times.before;
    model.tuned.reset();
    model.forms.clear();
    for (const compile::KernelReport* kernel : compile::all_kernels(model.compiled))
      if (Verdict* verdict = verdict_of(*kernel)) give_up(*verdict);
  }
  gains_.push_back(std::move(gain));
  return {};
}

/// Launches as a whole, on the simulator: the tuned ones must take fewer cycles.
Status TuneRun::compare_launches(TunedModel& model) {
  ModelGain gain;
  gain.name = model.subject.name;
  gain.before = TW_TRY(target().cost(model.compiled, compile_));
  model.tuned = TW_TRY(compile_subject(model.subject, with_verdicts({})));
  gain.after = gain.in_race = TW_TRY(target().cost(*model.tuned, compile_));
  gain.raced = true;
  if (gain.after >= gain.before) {
    gain.after = gain.before;
    model.tuned.reset();
    for (Verdict& verdict : verdicts_)
      if (verdict.known) give_up(verdict);
  }
  gains_.push_back(std::move(gain));
  return {};
}

/// Kernels that are no faster inside the model keep the rules' schedules; whether there are any.
bool TuneRun::give_up_slower(const TunedModel& model, const Duel& times) {
  bool any = false;
  for (const compile::KernelReport* report : compile::all_kernels(model.compiled)) {
    const compile::KernelReport& kernel = *report;
    Verdict* verdict = verdict_of(kernel);
    if (verdict == nullptr || !verdict->better) continue;
    double before = 0, after = 0;
    for (const std::string& step : kernel.steps) {
      const auto then = times.steps_before.find(step), now = times.steps_after.find(step);
      if (then == times.steps_before.end() || now == times.steps_after.end()) continue;
      const bool open = std::any_of(model.others.begin(), model.others.end(),
                                    [&](const OtherForms& forms) { return computes(forms, step); });
      if (!model.forms.empty() && open) continue;  // perhaps of another form
      before += then->second, after += now->second;
    }
    if (after < before || before == 0) continue;
    give_up(*verdict);
    any = true;
  }
  return any;
}

/// For every convolution that had a choice, what it came to.
std::vector<records::Record> TuneRun::decided_forms() const {
  std::map<std::string, records::Record> decided;
  each_form(plan_, [&](const ConvForms& conv, bool won) {
    const records::Record record = form_record(conv.conv, won ? conv.other : conv.rule, compile_,
                                               won ? conv.after : conv.before);
    if (!decided.emplace(record.workload, record).second && won) decided[record.workload] = record;
  });
  std::vector<records::Record> records;
  for (auto& [key, record] : decided) records.push_back(std::move(record));
  return records;
}

Status TuneRun::write_package() {
  if (settings_.output.empty()) return {};
  TunedModel& model = plan_.models.at(0);
  if (!model.tuned)
    model.tuned = TW_TRY(compile_subject(model.subject, with_verdicts(model.forms)));
  return save_with_samples(settings_.output, model.subject, *model.tuned, compile_, "auto");
}

}  // namespace tilewright::driver
