using System.Collections.Generic;
using System.Linq;
using Pulumi;
using Gatehouse = Pulumi.Gatehouse;

return await Deployment.RunAsync(() => 
{
    var staging = new Gatehouse.Namespace("staging", new()
    {
        Name = "staging",
        Settings = new Gatehouse.Inputs.NamespaceSettingsArgs
        {
            SessionRecord = true,
            ConnectionAnnouncement = "Staging. Break things here.",
        },
    });

});

