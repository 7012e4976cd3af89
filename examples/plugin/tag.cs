using System.Collections.Generic;
using System.Linq;
using Pulumi;
using Gatehouse = Pulumi.Gatehouse;

return await Deployment.RunAsync(() => 
{
    var edge = new Gatehouse.Tag("edge", new()
    {
        Name = "edge",
    });

});

